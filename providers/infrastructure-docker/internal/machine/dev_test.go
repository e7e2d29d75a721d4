package machine

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// devObjects returns the same as objects, with a DevMachine.
func devObjects(backend dockerv1.DevMachineBackendSpec, with ...func(*clusterv1.Machine, *dockerv1.DockerMachine)) []client.Object {
	all := objects(with...)
	return append(all[:3:3], &dockerv1.DevMachine{
		ObjectMeta: all[3].(*dockerv1.DockerMachine).ObjectMeta, Spec: dockerv1.DevMachineSpec{Backend: backend},
	})
}

func (w *world) readDev(t *testing.T) *dockerv1.DevMachine {
	t.Helper()
	obj := &dockerv1.DevMachine{}
	testenv.Must(t, w.Server.Get(t.Context(), key, obj))
	return obj
}

// register records whether the load balancer forwards to the machine, as the controller of clusters does.
func (w *world) register(t *testing.T, configured bool) {
	t.Helper()
	m := w.readDev(t)
	m.Status.LoadBalancerConfigured = configured
	testenv.Must(t, w.Server.Status().Update(t.Context(), m))
}

// TestDevMachine is the life of a machine of a control plane.
func TestDevMachine(t *testing.T) {
	docker := dockerv1.DevMachineBackendSpec{Docker: &dockerv1.DockerMachineBackendSpec{CustomImage: image}}
	w := newWorldOf(t, kinds.Dev(), devObjects(docker, controlPlane)...)
	w.present(t)
	w.must(t)
	m := w.readDev(t)
	if diff := cmp.Diff([]string{dockerv1.DevMachineFinalizer}, m.Finalizers); diff != "" || len(m.Status.Addresses) == 0 {
		t.Errorf("addresses %v, finalizers -want +got:\n%s", m.Status.Addresses, diff)
	}
	if of, _ := kinds.Dev().MachineOf(m); of.LoadBalancerConfigured || m.GetV1Beta1Conditions() == nil {
		t.Errorf("the machine is registered before the load balancer forwards to it: %+v", m)
	}
	state, err := w.runtime.Inspect(t.Context(), container)
	testenv.Must(t, err)
	if got := state.Labels[identity.KindLabel]; got != "DevMachine" {
		t.Errorf("the container belongs to a %q", got)
	}

	w.register(t, true)
	w.must(t)
	w.joined(t)
	w.must(t)
	m = w.readDev(t)
	if m.Spec.ProviderID != "docker:////c-m" || !ptr.Deref(m.Status.Initialization.Provisioned, false) {
		t.Errorf("spec %+v, status %+v", m.Spec, m.Status)
	}

	w.register(t, false)
	testenv.Must(t, w.Server.Delete(t.Context(), m))
	w.must(t)
	if err := w.Server.Get(t.Context(), key, m); !apierrors.IsNotFound(err) {
		t.Errorf("the object remains: %v", err)
	}
	if calls := w.changing(); !slices.Contains(calls, "Remove "+container) {
		t.Errorf("the container remains: %v", calls)
	}
}

// TestOtherBackends checks that objects are left alone that belong to another controller, or to none.
func TestOtherBackends(t *testing.T) {
	inMemory, docker := &dockerv1.InMemoryMachineBackendSpec{}, &dockerv1.DockerMachineBackendSpec{}
	for reason, backend := range map[string]dockerv1.DevMachineBackendSpec{
		"in memory": {InMemory: inMemory}, "none": {}, "both": {Docker: docker, InMemory: inMemory},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorldOf(t, kinds.Dev(), devObjects(backend)...)
			w.must(t)
			if calls := w.changing(); len(calls) > 0 || len(w.Writes) > 0 {
				t.Errorf("calls %v, writes %v", calls, w.Writes)
			}
		})
	}
}
