package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// newDev returns a world with a DevCluster, and a DevMachine of its control plane.
func newDev(t *testing.T, backend dockerv1.DevClusterBackendSpec) *world {
	t.Helper()
	cluster := newCluster()
	cluster.Spec.InfrastructureRef.Kind = "DevCluster"
	infra := &dockerv1.DevCluster{ObjectMeta: newInfra().ObjectMeta, Spec: dockerv1.DevClusterSpec{Backend: backend}}
	from := newMachine("test-1", "172.18.0.9")
	m := &dockerv1.DevMachine{ObjectMeta: from.ObjectMeta}
	m.Spec.Backend.Docker, m.Status.Addresses = &dockerv1.DockerMachineBackendSpec{}, from.Status.Addresses
	w := newWorld(t, cluster, infra, m)
	w.set = kinds.Dev()
	return w
}

// TestDevCluster is the life of a DevCluster: it becomes ready, its machine is registered, and it is deleted.
func TestDevCluster(t *testing.T) {
	w := newDev(t, dockerv1.DevClusterBackendSpec{Docker: &dockerv1.DockerClusterBackendSpec{
		FailureDomains: []clusterv1.FailureDomain{{Name: "a"}},
	}})
	w.must()
	w.must()
	got := &dockerv1.DevCluster{}
	testenv.Must(t, w.Get(t.Context(), infraKey(), got))
	if !ptr.Deref(got.Status.Initialization.Provisioned, false) || got.Spec.ControlPlaneEndpoint.Port != 6443 ||
		!condition.IsTrue(got, clusterv1.ReadyV1Beta1Condition) {
		t.Errorf("spec %+v, status %+v", got.Spec, got.Status)
	}
	if diff := cmp.Diff(got.Spec.Backend.Docker.FailureDomains, got.Status.FailureDomains); diff != "" {
		t.Errorf("failure domains, -spec +status:\n%s", diff)
	}
	if diff := cmp.Diff([]string{dockerv1.DevClusterFinalizer}, got.Finalizers); diff != "" {
		t.Errorf("finalizers, -want +got:\n%s", diff)
	}
	m := &dockerv1.DevMachine{}
	key := client.ObjectKey{Namespace: "default", Name: "test-1"}
	testenv.Must(t, w.Get(t.Context(), key, m))
	if !m.Status.LoadBalancerConfigured {
		t.Errorf("the machine is not registered: %+v", m.Status)
	}
	testenv.Must(t, w.Delete(t.Context(), m))
	w.must()
	testenv.Must(t, w.Delete(t.Context(), got))
	w.must()
	if err := w.Get(t.Context(), infraKey(), got); !apierrors.IsNotFound(err) {
		t.Errorf("the object remains: %v", err)
	}
}

// TestOtherBackend checks that a DevCluster in memory is left alone.
func TestOtherBackend(t *testing.T) {
	w := newDev(t, dockerv1.DevClusterBackendSpec{InMemory: &dockerv1.InMemoryClusterBackendSpec{}})
	w.must()
	if calls := w.runtime.Calls(); len(calls) > 0 || len(w.Writes) > 0 {
		t.Errorf("calls %v, writes %v", calls, w.Writes)
	}
}
