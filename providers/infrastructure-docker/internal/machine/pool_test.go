package machine

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// poolObjects returns the objects of a machine of a MachinePool that has no bootstrap data yet.
func poolObjects(with ...func(*clusterv1.Machine, *dockerv1.DockerMachine)) []client.Object {
	pool := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "pool-uid"}}
	ofPool := func(owner *clusterv1.Machine, m *dockerv1.DockerMachine) {
		owner.Spec.Bootstrap.DataSecretName = nil
		owner.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachinePool", Name: "p", UID: "pool-uid", Controller: ptr.To(true)}}
		m.Labels[clusterv1.MachinePoolNameLabel], m.Labels[identity.PoolLabel] = "p", "dp"
		m.Annotations = map[string]string{identity.FailureDomainLabel: "fd1"}
	}
	all := objects(append([]func(*clusterv1.Machine, *dockerv1.DockerMachine){ofPool}, with...)...)
	condition.Set(all[0].(*clusterv1.Cluster), condition.True(clusterv1.ControlPlaneInitializedV1Beta1Condition))
	return append(all, pool)
}

// TestMachineOfPool checks that a machine of a pool waits for the bootstrap data of the pool, and runs what is the pool's at that time.
func TestMachineOfPool(t *testing.T) {
	w := newWorld(t, poolObjects()...)
	w.present(t)
	w.must(t)
	expect(t, "without data", w, conditionStates{"ContainerProvisioned": waitsForData})
	pool := &clusterv1.MachinePool{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "p"}, pool); err != nil {
		t.Fatal(err)
	}
	pool.Spec.Template.Spec.Bootstrap.DataSecretName = ptr.To("data")
	if err := w.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	requests := w.Controller.ofPool(t.Context(), pool)
	if len(requests) != 1 || requests[0].Name != "m" {
		t.Errorf("bootstrap data of the pool wakes %v", requests)
	}
	w.joined(t)
	w.must(t)
	expect(t, "with data", w, conditionStates{"Ready": "True", "ContainerProvisioned": "True", "BootstrapExecSucceeded": "True"})
	if m := w.read(t); !isProvisioned(kinds.OfDockerMachine(m)) || m.Spec.ProviderID != "docker:////c-m" {
		t.Errorf("%+v %+v", m.Spec, m.Status)
	}
	state, err := w.runtime.Inspect(t.Context(), container)
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{}
	for _, name := range []string{identity.PoolLabel, identity.FailureDomainLabel, identity.RoleLabel} {
		labels[name] = state.Labels[name]
	}
	want := map[string]string{identity.PoolLabel: "dp", identity.FailureDomainLabel: "fd1", identity.RoleLabel: "worker"}
	if diff := cmp.Diff(want, labels); diff != "" {
		t.Errorf("labels of the container, -want +got:\n%s", diff)
	}
}

// TestMachineOfPoolOfEarlierVersion checks that a machine of a pool that Cluster API v1.7 created keeps its container.
func TestMachineOfPoolOfEarlierVersion(t *testing.T) {
	const old = "c-worker-abc123"
	w := newWorld(t, poolObjects(func(_ *clusterv1.Machine, m *dockerv1.DockerMachine) {
		m.Spec.ProviderID, m.Status.Initialization.Provisioned = "docker:////"+old, ptr.To(true)
	})...)
	labels := map[string]string{identity.ClusterLabel: "c", identity.RoleLabel: "worker", identity.PoolLabel: "p"}
	w.present(t)
	if err := w.runtime.Create(t.Context(), engine.Container{Name: old, Image: image, Labels: labels}); err != nil {
		t.Fatal(err)
	}
	w.runtime.Forget()
	w.must(t)
	if got := w.changing(); len(got) > 0 {
		t.Errorf("calls %v", got)
	}
	expect(t, "after the upgrade", w, conditionStates{"ContainerProvisioned": "True", "BootstrapExecSucceeded": "True"})
	if err := w.Client.Delete(t.Context(), w.read(t)); err != nil {
		t.Fatal(err)
	}
	w.must(t)
	if !w.gone(t) || slices.Contains(w.runtime.Containers(), old) {
		t.Errorf("containers %v", w.runtime.Containers())
	}
}
