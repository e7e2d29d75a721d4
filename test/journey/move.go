package journey

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Connect returns the management cluster of a kubeconfig, which has the providers already, until the test ends.
func (t *Tools) Connect(tb testing.TB, kubeconfig string) *Management {
	tb.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		tb.Fatalf("connecting to the management cluster: %v", err)
	}
	m, err := connect(tb.Context(), config, kubeconfig, "", t)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// Move moves everything in the namespace to another management cluster, and returns it there.
func (w *World) Move(to *Management) *World {
	w.t.Helper()
	r := w.Tools.Clusterctl(w.t.Context(), "", "move", "--kubeconfig", w.Kubeconfig, "--to-kubeconfig", to.Kubeconfig,
		"--namespace", w.Namespace)
	if r.Failed {
		w.t.Fatal(r)
	}
	w.t.Logf("clusterctl move:\n%s", r.Err)
	return w.at(to)
}

// at returns the same namespace of another management cluster.
func (w *World) at(m *Management) *World {
	return &World{Management: m, Namespace: w.Namespace, t: w.t, timeout: w.timeout}
}

// Moved returns the Cluster in the namespace that Move has returned.
func (c *Subject) Moved(to *World) *Subject {
	return &Subject{World: to, Name: c.Name, before: c.before}
}

// Identity is what a move does not change in a namespace.
type Identity struct {
	// Objects are those of Inventory, without those that every namespace has.
	Objects []string
	// Machines has provider ID and Node of each Machine, by name.
	Machines map[string]string
}

// Identity returns what a move must not change.
func (w *World) Identity() Identity {
	w.t.Helper()
	list := &clusterv1.MachineList{}
	if err := w.Client.List(w.t.Context(), list, client.InNamespace(w.Namespace)); err != nil {
		w.t.Fatal(err)
	}
	found := Identity{Machines: map[string]string{}}
	found.Objects = slices.DeleteFunc(w.Inventory(), func(name string) bool {
		return name == "configmaps/kube-root-ca.crt" || name == "serviceaccounts/default"
	})
	for _, m := range list.Items {
		id, node := "", ""
		if m.Spec.ProviderID != nil {
			id = *m.Spec.ProviderID
		}
		if m.Status.NodeRef != nil {
			node = m.Status.NodeRef.Name
		}
		found.Machines[m.Name] = fmt.Sprintf("%s %s", id, node)
	}
	return found
}
