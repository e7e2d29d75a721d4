package controlplane

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// The control plane gets its finalizer and label, and its template the Cluster as an owner, once. A missing template is no error
// before a Machine is created.
func TestOwn(t *testing.T) {
	for name, want := range map[string][]string{"small": {"patch TestMachineTemplate small"}, "missing": nil} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, machineTemplate()...)
			b.KCP.Spec.MachineTemplate.Spec.InfrastructureRef = *object.Reference(kind("TestMachineTemplate"), name)
			for round := range 2 {
				b.API.Writes = nil
				if _, err := b.take(t.Context(), "own"); err != nil {
					t.Fatal(err)
				}
				if round == 1 {
					want = nil
				}
				if !slices.Equal(b.API.Writes, want) {
					t.Errorf("round %d: writes %q, want %q", round, b.API.Writes, want)
				}
			}
			if b.KCP.Labels[clusterv1.ClusterNameLabel] != "c" || !slices.Contains(b.KCP.Finalizers, controlplanev1.KubeadmControlPlaneFinalizer) {
				t.Errorf("labels %v, finalizers %q", b.KCP.Labels, b.KCP.Finalizers)
			}
			if name == "missing" {
				return
			}
			template := kcptest.Build().Template(kind("TestMachineTemplate"), name)
			testenv.Must(t, b.API.Get(t.Context(), client.ObjectKeyFromObject(template), template))
			if owners := template.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != b.Cluster.UID {
				t.Errorf("owners of the template: %+v", owners)
			}
		})
	}
}
