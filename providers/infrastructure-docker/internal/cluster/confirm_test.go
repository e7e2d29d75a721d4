package cluster

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// TestConfirm: the load balancer of a Cluster that is paused in the API server is neither created nor removed, whatever the cache has. A
// Cluster that is moved away is paused.
func TestConfirm(t *testing.T) {
	for _, act := range []struct {
		reason string
		start  func(t *testing.T) *world
		want   string
	}{
		{"a new container", func(t *testing.T) *world { return newWorld(t, newCluster(), newInfra()) }, "Create " + lb},
		{"a container whose creation was interrupted", func(t *testing.T) *world {
			w := newWorld(t, newCluster(), newInfra())
			w.runtime.Put(engine.State{ID: lb, Name: lb, Labels: (&scope{obj: kinds.OfDockerCluster(newInfra())}).claim("test").Labels()})
			return w
		}, "Create " + lb},
		{"deletion", func(t *testing.T) *world {
			w := newWorld(t, newCluster(), newInfra())
			w.must()
			testenv.Must(t, w.Delete(t.Context(), newInfra()))
			return w
		}, "Remove " + lb},
	} {
		for _, pause := range []struct {
			reason     string
			obj        client.Object
			set, unset func(client.Object)
		}{
			{"the Cluster has spec.paused", newCluster(),
				func(obj client.Object) { object.Paused(obj.(*clusterv1.Cluster)) },
				func(obj client.Object) { obj.(*clusterv1.Cluster).Spec.Paused = ptr.To(false) }},
			{"the object has the annotation", newInfra(),
				func(obj client.Object) { object.PausedByAnnotation(obj) },
				func(obj client.Object) { delete(obj.GetAnnotations(), clusterv1.PausedAnnotation) }},
		} {
			t.Run(act.reason+", "+pause.reason, func(t *testing.T) {
				w := act.start(t)
				w.Cache.FreezeObjects(pause.obj)
				update(w, pause.obj, pause.set)
				w.runtime.Forget()
				for range 3 {
					_ = w.reconcile() // It waits for the cache, or a write of the object fails.
				}
				if got := w.changing(); len(got) > 0 {
					t.Errorf("paused: calls %v", got)
				}
				update(w, pause.obj, pause.unset)
				w.Cache.Thaw()
				w.must()
				if got := w.changing(); !slices.Contains(got, act.want) {
					t.Errorf("not paused: calls %v, want %s", got, act.want)
				}
			})
		}
	}
}

// changing returns the calls of the container runtime that change something.
func (w *world) changing() []string {
	return slices.DeleteFunc(w.runtime.Calls(), func(call string) bool {
		return strings.HasPrefix(call, "Inspect") || strings.HasPrefix(call, "List") || strings.HasPrefix(call, "Read")
	})
}
