package topologyplan

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// counted is a management cluster that records its requests.
type counted struct {
	client.Client
	world    *World
	requests []string
}

func (c *counted) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	c.requests = append(c.requests, "get "+obj.GetObjectKind().GroupVersionKind().Kind)
	return c.world.Get(ctx, key, obj, opts...)
}

func (c *counted) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.requests = append(c.requests, "list "+list.GetObjectKind().GroupVersionKind().Kind)
	return c.world.List(ctx, list, opts...)
}

// TestSharedReads: an ExtensionConfig is read from the list, once for all Clusters, and again after Forget.
func TestSharedReads(t *testing.T) {
	live := &counted{world: newWorld(t)}
	testenv.Must(t, live.world.PutTyped(&runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: "one"}}))
	s, err := NewSeries(Input{Live: live}, clock.RealClock{})
	testenv.Must(t, err)
	for range 2 {
		w := s.world()
		testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Name: "one"}, &runtimev1.ExtensionConfig{}))
		testenv.Must(t, w.List(t.Context(), &runtimev1.ExtensionConfigList{}))
		err := w.Get(t.Context(), client.ObjectKey{Name: "two"}, &runtimev1.ExtensionConfig{})
		if err == nil || !strings.Contains(err.Error(), "not found") {
			t.Errorf("an ExtensionConfig that does not exist: %v", err)
		}
	}
	want := []string{"list ExtensionConfigList", "get ExtensionConfig", "get ExtensionConfig"}
	if diff := cmp.Diff(want, live.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	s.Forget()
	testenv.Must(t, s.world().List(t.Context(), &runtimev1.ExtensionConfigList{}))
	if got := live.requests[len(live.requests)-1]; got != want[0] {
		t.Errorf("after Forget: %s", got)
	}
}
