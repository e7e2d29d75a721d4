package journey

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/extensiontest"
)

// updatedInPlace is true when the extension has completed updates of all Machines of a sort.
func updatedInPlace(e *extensiontest.InPlace, of func(*Snapshot) []clusterv1.Machine) Condition {
	return func(now *Snapshot) error {
		var want []string
		for _, m := range of(now) {
			want = append(want, m.Name)
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, e.Updated()); diff != "" {
			return fmt.Errorf("updates in place that are complete (-want +got):\n%s", diff)
		}
		return nil
	}
}

// TestInPlaceUpdates: an extension changes the kubelets of a control plane without new Machines. What it cannot change, the version, is
// rolled out with new Machines.
func TestInPlaceUpdates(t *testing.T) {
	t.Parallel()
	w := newExtensionWorld(t)
	able := &extensiontest.InPlace{Cannot: []string{"version"}}
	server := extensiontest.Serve(t, extensiontest.Options{}, able.ServeHTTP)
	testenv.Must(t, w.Client.Create(t.Context(), w.extensionConfig("in-place", byURL(server))))
	w.discovered("in-place", "True can-update-set.in-place can-update.in-place update.in-place")

	registration := func(pods string) string {
		return `{"nodeRegistration": {"kubeletExtraArgs": {"max-pods": "` + pods + `"}}}`
	}
	manifest := Plain{ControlPlanes: 3}.String()
	for before, after := range map[string]string{
		"  replicas: 3\n":        "  replicas: 3\n  rolloutStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0}}\n",
		"  kubeadmConfigSpec: {": "  kubeadmConfigSpec: {initConfiguration: " + registration("100") + ", joinConfiguration: " + registration("100") + ", ",
	} {
		if strings.Count(manifest, before) != 1 {
			t.Fatalf("the manifest does not have %q once", before)
		}
		manifest = strings.Replace(manifest, before, after, 1)
	}
	c := w.Plain(manifest)
	c.Eventually("the Cluster is ready", Ready, ControlPlanes(3))
	before := c.Snapshot()
	still := c.Always("no Machine is replaced", SameMachines((*Snapshot).ControlPlane, before))
	patch := func(body string) {
		testenv.Must(t, c.Client.Patch(t.Context(), &before.ControlPlanes.Items[0], client.RawPatch(types.MergePatchType, []byte(body))))
	}
	patch(`{"spec": {"kubeadmConfigSpec": {"initConfiguration": ` + registration("50") + `, "joinConfiguration": ` + registration("50") + `}}}`)
	c.Eventually("the kubelets are changed in place", updatedInPlace(able, (*Snapshot).ControlPlane), Ready, ControlPlanes(3))
	still()

	patch(`{"spec": {"version": "v1.31.2"}}`)
	c.Eventually("the version is rolled out with new Machines", Version("v1.31.2"), Ready, ControlPlanes(3),
		NewMachines((*Snapshot).ControlPlane, before))
	c.Gone()
}

// TestInPlaceUpdatesOfWorkers: the same for the workers of a MachineDeployment, without a Machine more or less meanwhile.
func TestInPlaceUpdatesOfWorkers(t *testing.T) {
	t.Parallel()
	w := newExtensionWorld(t)
	able := &extensiontest.InPlace{Cannot: []string{"version"}}
	server := extensiontest.Serve(t, extensiontest.Options{}, able.ServeHTTP)
	testenv.Must(t, w.Client.Create(t.Context(), w.extensionConfig("in-place-workers", byURL(server))))
	w.discovered("in-place-workers", "True can-update-set.in-place-workers can-update.in-place-workers update.in-place-workers")

	c := w.Plain(Plain{ControlPlanes: 1, Workers: 3}.String())
	c.Eventually("the Cluster is ready", Ready, ControlPlanes(1), Workers(3))
	patch := func(body string) {
		workers := &clusterv1.MachineDeployment{}
		workers.Namespace, workers.Name = c.Namespace, "workers"
		testenv.Must(t, c.Client.Patch(t.Context(), workers, client.RawPatch(types.MergePatchType, []byte(body))))
	}
	patch(`{"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}}`)
	before := c.Snapshot()
	still := c.Always("no Machine is replaced", SameMachines((*Snapshot).Workers, before))
	bootstrap := func(kind, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("bootstrap.cluster.x-k8s.io/v1beta1")
		u.SetKind(kind)
		u.SetNamespace(c.Namespace)
		u.SetName(name)
		return u
	}
	join := func(m clusterv1.Machine) map[string]any {
		config := bootstrap("KubeadmConfig", m.Spec.Bootstrap.ConfigRef.Name)
		testenv.Must(t, c.Client.Get(t.Context(), client.ObjectKeyFromObject(config), config))
		fields, _, err := unstructured.NestedMap(config.Object, "spec", "joinConfiguration")
		testenv.Must(t, err)
		return fields
	}
	limited := bootstrap("KubeadmConfigTemplate", "limited")
	testenv.Must(t, unstructured.SetNestedField(limited.Object, "50", "spec", "template", "spec", "joinConfiguration", "nodeRegistration", "kubeletExtraArgs", "max-pods"))
	testenv.Must(t, c.Client.Create(t.Context(), limited))
	patch(`{"spec": {"template": {"spec": {"bootstrap": {"configRef": {"name": "limited"}}}}}}`)
	c.Eventually("the kubelets are changed in place", updatedInPlace(able, (*Snapshot).Workers), Ready, Workers(3))
	still()
	for _, m := range c.Snapshot().Workers() {
		if pods, _, _ := unstructured.NestedString(join(m), "nodeRegistration", "kubeletExtraArgs", "max-pods"); pods != "50" {
			t.Errorf("Machine %s has max-pods %q", m.Name, pods)
		}
	}

	patch(`{"spec": {"template": {"spec": {"version": "v1.30.4"}}}}`)
	c.Eventually("the version is rolled out with new Machines", ofWorkers("v1.30.4"), Ready, Workers(3), NewMachines((*Snapshot).Workers, before))
	c.Gone()
}
