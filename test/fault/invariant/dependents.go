package invariant

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// nothingOrphaned checks that no owner is deleted before its dependents.
func nothingOrphaned(r Run) []Violation {
	return r.play(func(e history.Event, now history.State) *Violation {
		if e.Type != watch.Deleted {
			return nil
		}
		for _, left := range dependents(e.Object, now) {
			return &Violation{
				Detail: fmt.Sprintf("%s %s is deleted before %s %s", e.Object.GetKind(), e.Object.GetName(), left.GetKind(), left.GetName()),
			}
		}
		return nil
	})
}

// dependents returns the objects that must be deleted before gone, and are not.
func dependents(gone *unstructured.Unstructured, now history.State) []*unstructured.Unstructured {
	var left []*unstructured.Unstructured
	add := func(kind string, belongs func(*unstructured.Unstructured) bool) {
		for _, o := range now.Of(kind) {
			if belongs(o) {
				left = append(left, o)
			}
		}
	}
	owned := func(o *unstructured.Unstructured) bool { return controlledBy(o, gone) }
	switch gone.GetKind() {
	case "Cluster":
		ofCluster := func(o *unstructured.Unstructured) bool {
			return o.GetLabels()[clusterv1.ClusterNameLabel] == gone.GetName()
		}
		for _, kind := range []string{
			"InMemoryCluster", "KubeadmControlPlane", "MachineDeployment", "MachineSet", "Machine", "InMemoryMachine",
			"MachinePool", "InMemoryMachinePool",
		} {
			add(kind, ofCluster)
		}
	case "InMemoryCluster", "KubeadmControlPlane":
		controlPlane := func(o *unstructured.Unstructured) bool {
			_, is := o.GetLabels()[clusterv1.MachineControlPlaneLabel]
			return is
		}
		add("Machine", controlPlane) // A Machine is deleted after its infrastructure.
	case "MachineSet":
		// If the Cluster is being deleted, the garbage collector deletes the Machines of deleted MachineSets.
		if cluster := now[history.Key{Kind: "Cluster", Name: scenario.ClusterName}]; cluster != nil && cluster.GetDeletionTimestamp() == nil {
			add("Machine", owned)
		}
	case "MachinePool":
		for _, kind := range []string{"InMemoryMachinePool", "KubeadmConfig", "Machine"} {
			add(kind, owned)
		}
	case "InMemoryMachinePool":
		add("InMemoryMachine", func(o *unstructured.Unstructured) bool { // A Machine controls it.
			return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == gone.GetUID() })
		})
	case "Machine":
		add("InMemoryMachine", owned)
		add("KubeadmConfig", owned)
	}
	return left
}

func controlledBy(o, owner *unstructured.Unstructured) bool {
	for _, ref := range o.GetOwnerReferences() {
		if ref.UID == owner.GetUID() && ref.Controller != nil && *ref.Controller {
			return true
		}
	}
	return false
}
