package journey

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/recorded"
)

// areHandedBack scales a Cluster up and down, so that Machines of this version exist, and hands all Clusters back. Nothing is left that
// v1.7 does not know, and those at rest are as they were, except for what was written to them.
func areHandedBack(t *testing.T, m *Management, o origin, states map[string]*takenOver, corpus []recorded.State) {
	t.Helper()
	scaled := states["6-scaled"].on(t, m)
	scaled.Change(SetControlPlanes(3))
	scaled.Change(SetWorkers(5))
	scaled.Eventually("the Cluster is scaled up", Ready, ControlPlanes(3), Workers(5), scaled.WorkloadMatches)
	scaled.Change(SetControlPlanes(1))
	scaled.Change(SetWorkers(4))
	scaled.Eventually("the Cluster is scaled down", Ready, ControlPlanes(1), Workers(4), scaled.WorkloadMatches)
	hook := "Machine annotation " + controlplanev1.PreTerminateHookCleanupAnnotation
	if !scaled.metadata()[hook] {
		t.Errorf("no Machine has the hook, so that nothing has to be removed: %v", slices.Sorted(maps.Keys(scaled.metadata())))
	}

	w := &World{Management: m, Namespace: scaled.Namespace, t: t, timeout: scaled.timeout}
	handBack := func(flags ...string) Result {
		arguments := []string{"takeover", "handback", "--to", "v1.7.9", "--kubeconfig", m.Kubeconfig}
		return w.Tools.Clusterctl(t.Context(), "", append(arguments, flags...)...)
	}
	if r := handBack(); r.Failed {
		t.Fatal(r)
	}
	// What runs as v1.7 are managers of this version, which would set the hook again.
	for _, d := range w.deployments() {
		scale := []string{"--kubeconfig", m.Kubeconfig, "scale", "deployments", "-n", d.Namespace, "--all", "--replicas", "0"}
		if r := w.Tools.Kubectl(t.Context(), "", scale...); r.Failed {
			t.Fatal(r)
		}
	}
	if r := handBack("--dry-run"); r.Failed || r.Out != "" {
		t.Fatal(r)
	}

	known := knownKeys(corpus)
	for state, c := range states {
		c := c.on(t, m)
		found := c.metadata()
		maps.DeleteFunc(found, func(key string, _ bool) bool { return known[key] })
		if len(found) > 0 {
			t.Errorf("%s: v1.7 does not know %v", state, slices.Sorted(maps.Keys(found)))
		}
		if written, atRest := o.written[state]; atRest && state != scaled.state.Name {
			if diff := cmp.Diff(written, c.written(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: what was written (-known +found):\n%s", state, diff)
			}
		}
	}
}

// knownKeys returns the keys of annotations, labels and finalizers that v1.7 has written, and of the records that remain: only managers of
// this version read them, and without them, a name could be used again, or a Machine be compared in another way.
func knownKeys(corpus []recorded.State) map[string]bool {
	known := map[string]bool{
		"Machine annotation controlplane.cluster.x-k8s.io/kubeadm-config-hash": true,
		"Machine annotation machineset.cluster.x-k8s.io/names-generation":      true,
		"MachineSet annotation machineset.cluster.x-k8s.io/names-generation":   true,
	}
	for _, state := range corpus {
		for _, o := range slices.Concat(state.Objects, state.Secrets) {
			addKeys(known, o)
		}
	}
	return known
}

// metadata returns the keys of the annotations, labels and finalizers of all objects in the namespace of the Cluster.
func (c *takenOver) metadata() map[string]bool {
	c.t.Helper()
	found := map[string]bool{}
	for _, v := range c.storage.objects(c.Namespace) {
		addKeys(found, &unstructured.Unstructured{Object: c.parsed(v)})
	}
	secrets := &corev1.SecretList{}
	testenv.Must(c.t, c.Client.List(c.t.Context(), secrets, client.InNamespace(c.Namespace)))
	for i := range secrets.Items {
		secrets.Items[i].SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		addKeys(found, &secrets.Items[i])
	}
	return found
}

func addKeys(to map[string]bool, o client.Object) {
	add := func(what, key string) {
		to[fmt.Sprintf("%s %s %s", o.GetObjectKind().GroupVersionKind().Kind, what, key)] = true
	}
	for key := range o.GetAnnotations() {
		add("annotation", key)
	}
	for key := range o.GetLabels() {
		add("label", key)
	}
	for _, key := range o.GetFinalizers() {
		add("finalizer", key)
	}
}
