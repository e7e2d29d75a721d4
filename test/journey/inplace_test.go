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

	const replicas = "  replicas: 3\n"
	manifest := Plain{ControlPlanes: 3}.String()
	if strings.Count(manifest, replicas) != 1 {
		t.Fatalf("the manifest does not have %q once", replicas)
	}
	c := w.Plain(strings.Replace(manifest, replicas, replicas+"  rolloutStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0}}\n", 1))
	c.Eventually("the Cluster is ready", Ready, ControlPlanes(3))
	before := c.Snapshot()
	still := c.Always("no Machine is replaced", SameMachines((*Snapshot).ControlPlane, before))
	patch := func(body string) {
		testenv.Must(t, c.Client.Patch(t.Context(), &before.ControlPlanes.Items[0], client.RawPatch(types.MergePatchType, []byte(body))))
	}
	const registration = `{"nodeRegistration": {"kubeletExtraArgs": {"max-pods": "50"}}}`
	patch(`{"spec": {"kubeadmConfigSpec": {"initConfiguration": ` + registration + `, "joinConfiguration": ` + registration + `}}}`)
	c.Eventually("the kubelets are changed in place", updatedInPlace(able), Ready, ControlPlanes(3))
	still()

	patch(`{"spec": {"version": "v1.31.2"}}`)
	c.Eventually("the version is rolled out with new Machines", Version("v1.31.2"), Ready, ControlPlanes(3),
		NewMachines((*Snapshot).ControlPlane, before))
	c.Gone()
}
