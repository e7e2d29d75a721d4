package step

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// delayed is a queue that records what is added to it, and after which time.
type delayed struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added []string
}

// AddAfter implements workqueue.TypedDelayingInterface.
func (d *delayed) AddAfter(r reconcile.Request, after time.Duration) {
	d.added = append(d.added, r.Name+" after "+after.String())
}

func TestSettled(t *testing.T) {
	concerns := func(_ context.Context, obj client.Object) []reconcile.Request {
		m, ok := obj.(*clusterv1.Machine)
		if !ok || m.Spec.ClusterName == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: m.Spec.ClusterName}}}
	}
	of := func(cluster string) *clusterv1.Machine {
		m := machine()
		m.Spec.ClusterName = cluster
		return m
	}
	h := settled{after: time.Second, concerns: concerns}.handler()
	for _, tt := range []struct {
		reason string
		event  func(q requestQueue)
		want   []string
	}{
		{"creation", func(q requestQueue) { h.Create(t.Context(), event.CreateEvent{Object: of("a")}, q) }, []string{"a after 1s"}},
		{"an update concerns what it concerned before, too", func(q requestQueue) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: of("a"), ObjectNew: of("b")}, q)
		}, []string{"a after 1s", "b after 1s"}},
		{"deletion", func(q requestQueue) { h.Delete(t.Context(), event.DeleteEvent{Object: of("a")}, q) }, []string{"a after 1s"}},
		{"generic", func(q requestQueue) { h.Generic(t.Context(), event.GenericEvent{Object: of("a")}, q) }, []string{"a after 1s"}},
		{"nothing is concerned", func(q requestQueue) { h.Create(t.Context(), event.CreateEvent{Object: of("")}, q) }, nil},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			q := &delayed{}
			tt.event(q)
			if diff := cmp.Diff(tt.want, q.added); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
