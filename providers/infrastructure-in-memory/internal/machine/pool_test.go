package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestMachineOfPool starts a machine of a MachinePool, whose Machine has no bootstrap data of its own, with the data of the pool.
func TestMachineOfPool(t *testing.T) {
	pool := build.MachinePool("p")
	objects := newMachine("m", false)
	owner, obj := objects[0].(*clusterv1.Machine), objects[1].(*inmemoryv1.InMemoryMachine)
	owner.Spec.Bootstrap.DataSecretName = nil
	owner.OwnerReferences = []metav1.OwnerReference{ownership.Reference(pool, clusterv1.GroupVersion.WithKind(clusterv1.MachinePoolKind),
		true)}
	obj.Labels[clusterv1.MachinePoolNameLabel] = "p"
	obj.Spec.FailureDomain = "a"
	w := newWorld(t, append(objects, pool, newCluster(), newInfra())...)
	c := &Controller{Clients: w.ForController(), kinds: kinds.InMemory(), lab: w.lab, pools: true}
	w.runner = c.declared().Runner(c.Clients)

	w.reconcile(t, "m")
	if w.read(t, "m").Spec.ProviderID != nil {
		t.Fatal("the machine starts without bootstrap data")
	}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))
	pool.Spec.Template.Spec.Bootstrap.DataSecretName = ptr.To("data")
	testenv.Must(t, w.Update(t.Context(), pool))
	if diff := cmp.Diff([]reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}, c.ofPool(t.Context(), pool)); diff != "" {
		t.Errorf("machines that wait for the pool, -want +got:\n%s", diff)
	}
	w.reconcile(t, "m")
	if got := w.read(t, "m"); !got.Status.Ready {
		t.Errorf("%+v", got.Status)
	}
	group, _ := w.lab.Cloud.Group(key)
	node, err := store.Get[corev1.Node](group, "", "m")
	testenv.Must(t, err)
	if got := node.Labels[corev1.LabelTopologyZone]; got != "a" {
		t.Errorf("the zone of the Node is %q", got)
	}
}
