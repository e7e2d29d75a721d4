package journey

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
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
	testenv.Must(t, w.Client.Create(t.Context(), w.extensionConfig("workers-in-place", byURL(server))))
	w.discovered("workers-in-place", "True can-update-set.workers-in-place can-update.workers-in-place update.workers-in-place")

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
	limited := &bootstrapv1.KubeadmConfigTemplate{}
	limited.Namespace, limited.Name = c.Namespace, "limited"
	limited.Spec.Template.Spec.JoinConfiguration = &bootstrapv1.JoinConfiguration{
		NodeRegistration: bootstrapv1.NodeRegistrationOptions{KubeletExtraArgs: map[string]string{"max-pods": "50"}},
	}
	testenv.Must(t, c.Client.Create(t.Context(), limited))
	patch(`{"spec": {"template": {"spec": {"bootstrap": {"configRef": {"name": "limited"}}}}}}`)
	c.Eventually("the kubelets are changed in place", updatedInPlace(able, (*Snapshot).Workers), Ready, Workers(3))
	still()
	for _, m := range c.Snapshot().Workers() {
		config := &bootstrapv1.KubeadmConfig{}
		testenv.Must(t, c.Client.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: m.Spec.Bootstrap.ConfigRef.Name}, config))
		if join := config.Spec.JoinConfiguration; join == nil || join.NodeRegistration.KubeletExtraArgs["max-pods"] != "50" || join.Discovery.BootstrapToken == nil {
			t.Errorf("KubeadmConfig %s: %+v", config.Name, config.Spec)
		}
	}

	patch(`{"spec": {"template": {"spec": {"version": "v1.30.4"}}}}`)
	c.Eventually("the version is rolled out with new Machines", ofWorkers("v1.30.4"), Ready, Workers(3), NewMachines((*Snapshot).Workers, before))
	c.Gone()
}
