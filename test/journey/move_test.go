package journey

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// TestMove moves ten Clusters to another management cluster, and back. Both management clusters keep running, so that a source
// that still reconciled would interfere. No object is created or replaced: Machines keep their names, provider IDs and Nodes.
func TestMove(t *testing.T) {
	t.Parallel()
	const clusters = 10
	tools := shared.Management(t).Tools
	var sides [2]*Management
	for i := range sides {
		s := NewStandalone(t, tools)
		if err := tools.install(t.Context(), s.kubeconfig()); err != nil {
			t.Fatal(err)
		}
		sides[i] = s.Management()
	}
	w := sides[0].World(t)
	w.Patient()
	class := w.Class(tools.ProjectTemplate())
	subjects := make([]*Subject, clusters)
	for i := range subjects {
		subjects[i] = w.Subject(NewCluster(fmt.Sprintf("moved-%d", i), class).ControlPlanes(1).Workers(1).Build())
	}
	for _, c := range subjects {
		c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1))
	}
	inventory, machines := movedInventory(w), machineIdentities(w)
	for i, from := range []*Management{sides[0], sides[1]} {
		to := sides[1-i]
		r := tools.Clusterctl(t.Context(), "", "move", "--kubeconfig", from.Kubeconfig, "--to-kubeconfig", to.Kubeconfig, "--namespace", w.Namespace)
		if r.Failed {
			t.Fatal(r)
		}
		there := &World{Management: to, Namespace: w.Namespace, t: t, timeout: 3 * time.Minute}
		for _, c := range subjects {
			moved := &Subject{World: there, Name: c.Name}
			moved.Eventually("the Cluster is ready after the move", Ready, ControlPlanes(1), Workers(1), moved.WorkloadMatches)
		}
		if diff := cmp.Diff(inventory, movedInventory(there)); diff != "" {
			t.Errorf("objects after move %d: -before +after:\n%s", i+1, diff)
		}
		if diff := cmp.Diff(machines, machineIdentities(there)); diff != "" {
			t.Errorf("Machines after move %d: -before +after:\n%s", i+1, diff)
		}
		left := &clusterv1.MachineList{}
		if err := from.Client.List(t.Context(), left, client.InNamespace(w.Namespace)); err != nil || len(left.Items) > 0 {
			t.Errorf("%d Machines are left in the source (%v)", len(left.Items), err)
		}
	}
}

// movedInventory lists the objects of a World without those that every namespace has.
func movedInventory(w *World) []string {
	w.t.Helper()
	return slices.DeleteFunc(w.Inventory(), func(name string) bool {
		return name == "configmaps/kube-root-ca.crt" || name == "serviceaccounts/default"
	})
}

// machineIdentities returns what must not change about Machines: provider ID and Node, by name.
func machineIdentities(w *World) map[string]string {
	w.t.Helper()
	list := &clusterv1.MachineList{}
	if err := w.Client.List(w.t.Context(), list, client.InNamespace(w.Namespace)); err != nil {
		w.t.Fatal(err)
	}
	found := map[string]string{}
	for _, m := range list.Items {
		id, node := "", ""
		if m.Spec.ProviderID != nil {
			id = *m.Spec.ProviderID
		}
		if m.Status.NodeRef != nil {
			node = m.Status.NodeRef.Name
		}
		found[m.Name] = id + " " + node
	}
	return found
}
