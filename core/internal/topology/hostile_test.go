package topology

import (
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
)

// A class whose template would work for ever is an error of its Clusters, soon, that says which patch it is; others go on.
func TestAHostileClassConcernsItsClustersAlone(t *testing.T) {
	w := newWorld(t)
	class := &clusterv1.ClusterClass{}
	if err := w.Get(t.Context(), w.key("simple"), class); err != nil {
		t.Fatal(err)
	}
	class.Name, class.ResourceVersion, class.UID = "hostile", "", ""
	class.Spec.Patches = []clusterv1.ClusterClassPatch{{
		Name: "endless", EnabledIf: ptr.To(`{{ range until 2000000000 }}{{ range until 2000000000 }}x{{ end }}{{ end }}`),
		Definitions: []clusterv1.PatchDefinition{{
			Selector: clusterv1.PatchSelector{
				APIVersion: class.Spec.ControlPlane.Ref.APIVersion, Kind: class.Spec.ControlPlane.Ref.Kind,
				MatchResources: clusterv1.PatchSelectorMatch{ControlPlane: true},
			},
			JSONPatches: []clusterv1.JSONPatch{{Op: "add", Path: "/spec/template/spec/rolloutAfter", Value: ptr.To(raw(`"2030-01-01T00:00:00Z"`))}},
		}},
	}}
	w.created(class)
	w.reconciledClass("hostile")
	hostile, fine := w.cluster("hostile"), w.cluster("fine")
	hostile.Spec.Topology.Class = "hostile"
	w.created(hostile)
	w.created(fine)

	const limit = time.Minute // Seconds, on a quiet machine. Without a limit it would take years.
	begin := time.Now()
	if _, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(hostile)}); err == nil {
		t.Error("the template comes to an end")
	}
	if took := time.Since(begin); took > limit {
		t.Errorf("it took %s to refuse the template", took)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(hostile), hostile); err != nil {
		t.Fatal(err)
	}
	got := condition.Get(hostile, clusterv1.TopologyReconciledCondition)
	if got == nil || got.Reason != clusterv1.TopologyReconcileFailedReason || !strings.Contains(got.Message, "endless") || !strings.Contains(got.Message, "make lists, loops and values smaller") {
		t.Errorf("condition = %v, want one that names the patch and what is too much", got)
	}
	w.reconciled(fine)
	if len(w.made(fine)) == 0 {
		t.Error("nothing was made for the other Cluster")
	}
}
