package journey

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/extensiontest"
)

// updatedInPlace is true when the extension has completed updates of all control plane Machines.
func updatedInPlace(e *extensiontest.InPlace) Condition {
	return func(now *Snapshot) error {
		var want []string
		for _, m := range now.ControlPlane() {
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
	w.discovered("in-place", "True can-update.in-place update.in-place")

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
	c.Eventually("the kubelets are changed in place", updatedInPlace(able), Ready, ControlPlanes(3))
	still()

	patch(`{"spec": {"version": "v1.31.2"}}`)
	c.Eventually("the version is rolled out with new Machines", Version("v1.31.2"), Ready, ControlPlanes(3),
		NewMachines((*Snapshot).ControlPlane, before))
	c.Gone()
}
