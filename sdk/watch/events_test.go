package watch_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

func TestEvents(t *testing.T) {
	running, paused := &clusterv1.Cluster{}, &clusterv1.Cluster{Spec: clusterv1.ClusterSpec{Paused: ptr.To(true)}}
	pause := watch.Updated(func(before, after *clusterv1.Cluster) bool {
		return ptr.Deref(before.Spec.Paused, false) != ptr.Deref(after.Spec.Paused, false)
	})
	for name, c := range map[string]struct {
		reason        string
		p             predicate.Predicate
		before, after client.Object
		want          []string
	}{
		"Created":  {"what appears", watch.Created(), running, paused, []string{"create"}},
		"Deleted":  {"deletions", watch.Deleted(), running, paused, []string{"delete"}},
		"Matters":  {"an update that matters", pause, running, paused, []string{"update"}},
		"Same":     {"an update that does not", pause, running, running, nil},
		"Stranger": {"an update of another kind never matters", pause, &corev1.Secret{}, &corev1.Secret{}, nil},
		"Resynced": {"no change at all", watch.Resynced(), running, running, []string{"update"}},
		"Changed":  {"a change is no resync", watch.Resynced(), running, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2"}}, nil},
		"Or":       {"they combine", predicate.Or(watch.Created(), pause), running, paused, []string{"create", "update"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range []struct {
				name   string
				passes bool
			}{
				{"create", c.p.Create(event.CreateEvent{Object: c.after})},
				{"update", c.p.Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after})},
				{"delete", c.p.Delete(event.DeleteEvent{Object: c.after})},
				{"generic", c.p.Generic(event.GenericEvent{Object: c.after})},
			} {
				if e.passes {
					got = append(got, e.name)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}
