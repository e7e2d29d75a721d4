package topology

import (
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// An endless template in a class soon results in an error that contains the patch; Clusters of other classes are reconciled.
func TestAHostileClassAffectsOnlyItsClusters(t *testing.T) {
	w := newWorld(t)
	class := &clusterv1.ClusterClass{}
	if err := w.Get(t.Context(), w.key("simple"), class); err != nil {
		t.Fatal(err)
	}
	class.Name, class.ResourceVersion, class.UID = "hostile", "", ""
	class.Spec.Patches = []clusterv1.ClusterClassPatch{{
		Name: "endless", EnabledIf: `{{ range until 2000000000 }}{{ range until 2000000000 }}x{{ end }}{{ end }}`,
		Definitions: []clusterv1.PatchDefinition{{
			Selector: clusterv1.PatchSelector{
				APIVersion: class.Spec.ControlPlane.TemplateRef.APIVersion, Kind: class.Spec.ControlPlane.TemplateRef.Kind,
				MatchResources: clusterv1.PatchSelectorMatch{ControlPlane: ptr.To(true)},
			},
			JSONPatches: []clusterv1.JSONPatch{{Op: "add", Path: "/spec/template/spec/rolloutAfter", Value: ptr.To(raw(`"2030-01-01T00:00:00Z"`))}},
		}},
	}}
	w.created(class)
	w.reconciledClass("hostile")
	hostile, fine := w.cluster("hostile"), w.cluster("fine")
	hostile.Spec.Topology.ClassRef.Name = "hostile"
	w.created(hostile)
	w.created(fine)

	const limit = time.Minute // Seconds, on a quiet machine. Without a limit it would take years.
	begin := time.Now()
	if _, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(hostile)}); err == nil {
		t.Error("the endless template does not fail")
	}
	if took := time.Since(begin); took > limit {
		t.Errorf("rejecting the template took %s", took)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(hostile), hostile); err != nil {
		t.Fatal(err)
	}
	got := condition.Get(hostile, clusterv1.TopologyReconciledV1Beta1Condition)
	if got == nil || got.Reason != clusterv1.TopologyReconcileFailedV1Beta1Reason || !strings.Contains(got.Message, "endless") || !strings.Contains(got.Message, "make lists, loops and values smaller") {
		t.Errorf("condition = %v, want one with the patch and the limit", got)
	}
	w.reconciled(fine)
	if len(w.summary(fine)) == 0 {
		t.Error("nothing was created for the other Cluster")
	}
}
