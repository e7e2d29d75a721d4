package machine

import (
	"slices"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// TestConfirm: containers of a Cluster that is paused in the API server are neither created nor removed, whatever the cache has. A
// Cluster that is moved away is paused.
func TestConfirm(t *testing.T) {
	claimed := func(_ *clusterv1.Machine, m *dockerv1.DockerMachine) {
		m.Finalizers = []string{dockerv1.MachineFinalizer}
		m.Annotations = map[string]string{"docker.cluster.x-k8s.io/identity": string(object.UID("DockerMachine", "m"))}
	}
	started := func(t *testing.T, with ...func(*clusterv1.Machine, *dockerv1.DockerMachine)) *world {
		w := newWorld(t, objects(with...)...)
		w.present(t)
		return w
	}
	for _, act := range []struct {
		reason string
		start  func(t *testing.T) *world
		want   string
	}{
		{"a new container", func(t *testing.T) *world { return started(t) }, "Create c-m"},
		{"a new container of an object that was claimed before", func(t *testing.T) *world { return started(t, claimed) }, "Create c-m"},
		{"a container whose creation was interrupted", func(t *testing.T) *world {
			w := started(t, controlPlane)
			w.must(t)
			created, _ := w.runtime.Created(container)
			w.runtime.Put(engine.State{Name: container, Image: image, Labels: created.Labels})
			return w
		}, "Create c-m"},
		{"deletion", func(t *testing.T) *world {
			w := provisioned(t)
			w.remove(t)
			return w
		}, "Remove c-m"},
	} {
		for _, pause := range []struct {
			reason string
			obj    func() client.Object
			set    func(client.Object)
			unset  func(client.Object)
		}{
			{"the Cluster has spec.paused", func() client.Object { return newCluster() },
				func(obj client.Object) { object.Paused(obj.(*clusterv1.Cluster)) },
				func(obj client.Object) { obj.(*clusterv1.Cluster).Spec.Paused = ptr.To(false) }},
			{"the object has the annotation", func() client.Object { return &dockerv1.DockerMachine{ObjectMeta: build.Meta("DockerMachine", "m")} },
				func(obj client.Object) { object.PausedByAnnotation(obj) },
				func(obj client.Object) { delete(obj.GetAnnotations(), clusterv1.PausedAnnotation) }},
		} {
			t.Run(act.reason+", "+pause.reason, func(t *testing.T) {
				w := act.start(t)
				change := func(f func(client.Object)) {
					obj := pause.obj()
					testenv.Must(t, w.Server.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
					f(obj)
					testenv.Must(t, w.Server.Update(t.Context(), obj))
				}
				w.Cache.FreezeObjects(pause.obj())
				change(pause.set)
				w.runtime.Forget()
				for range 3 {
					_, _ = w.reconcile(t) // It waits for the cache, or a write of the object fails.
					w.settle()
				}
				if got := w.changing(); len(got) > 0 || w.gone(t) {
					t.Errorf("paused: calls %v, gone: %v", got, w.gone(t))
				}
				change(pause.unset)
				w.Cache.Thaw()
				w.must(t)
				if got := w.changing(); !slices.Contains(got, act.want) {
					t.Errorf("not paused: calls %v, want %s", got, act.want)
				}
			})
		}
	}
}
