package machinedeployment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/machinedeployment/rollout"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

func annotated(name string, annotations map[string]string) *clusterv1.MachineSet {
	set := machineSet(name, 1, 1)
	set.Annotations = annotations
	return set
}

func TestAnnotations(t *testing.T) {
	type a = map[string]string
	const (
		revision = clusterv1.RevisionAnnotation
		history  = clusterv1.RevisionHistoryAnnotation
		desired  = clusterv1.DesiredReplicasAnnotation
		most     = clusterv1.MaxReplicasAnnotation
		frozen   = clusterv1.DisableMachineCreateAnnotation
	)
	cases := map[string]struct {
		reason     string
		deployment a
		set        *clusterv1.MachineSet // nil if it does not exist
		old        bool
		others     []*clusterv1.MachineSet
		target     rollout.Target
		want       a
	}{
		"First": {reason: "the first revision is 1", target: rollout.Target{Replicas: 3}, want: a{revision: "1", desired: "3", most: "4"}},
		"Next": {reason: "the next revision follows the highest", others: []*clusterv1.MachineSet{annotated("x", a{revision: "2"}), annotated("y", a{revision: "9"})},
			want: a{revision: "10", desired: "3", most: "4"}},
		"Copied": {reason: "annotations of the deployment are copied, except its own bookkeeping",
			deployment: a{"own": "yes", corev1.LastAppliedConfigAnnotation: "{}", revision: "7", history: "1", desired: "8", most: "9",
				conversion.OlderVersionAnnotation: "{}", clusterv1.ConversionDataAnnotation: "{}"},
			want: a{"own": "yes", revision: "1", desired: "3", most: "4"}},
		"Kept":   {reason: "the newest set keeps its revision", set: annotated("s", a{revision: "5", history: "1,3"}), want: a{revision: "5", history: "1,3", desired: "3", most: "4"}},
		"Reused": {reason: "a set that becomes the newest again gets a new revision, the old one is added to the history", set: annotated("s", a{revision: "2", history: "1"}), others: []*clusterv1.MachineSet{annotated("x", a{revision: "3"})}, want: a{revision: "4", history: "1,2", desired: "3", most: "4"}},
		"ReusedFirst": {reason: "the history starts with the first reuse", set: annotated("s", a{revision: "2"}), others: []*clusterv1.MachineSet{annotated("x", a{revision: "3"})},
			want: a{revision: "4", history: "2", desired: "3", most: "4"}},
		"Adopted": {reason: "a set without revision gets one and no history", set: annotated("s", nil), want: a{revision: "1", desired: "3", most: "4"}},
		"Invalid": {reason: "a revision that is not a number is ignored", set: annotated("s", a{revision: "x"}), want: a{revision: "1", desired: "3", most: "4"}},
		"Old": {reason: "an old set with replicas has the current numbers", set: annotated("s", a{revision: "2", desired: "1", most: "2"}), old: true, target: rollout.Target{Replicas: 1},
			want: a{revision: "2", desired: "3", most: "4"}},
		"OldEmpty": {reason: "an old set without replicas keeps its numbers", set: annotated("s", a{revision: "2", desired: "1", most: "2", "gone": "from the deployment"}), old: true,
			want: a{revision: "2", desired: "1", most: "2"}},
		"Frozen": {reason: "a frozen set has the annotation", set: annotated("s", a{revision: "2"}), old: true, target: rollout.Target{Replicas: 1, Frozen: true},
			want: a{revision: "2", desired: "3", most: "4", frozen: "true"}},
		"Unfrozen": {reason: "v1.14 leaves false", set: annotated("s", a{revision: "2", frozen: "false"}), target: rollout.Target{Replicas: 1},
			want: a{revision: "2", desired: "3", most: "4", frozen: "false"}},
		"Thawed": {reason: "the annotation is removed when the set is no longer frozen", set: annotated("s", a{revision: "2", frozen: "true"}), target: rollout.Target{Replicas: 1},
			want: a{revision: "2", desired: "3", most: "4"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			md := machineDeployment(metav1.Time{})
			md.Annotations, md.Spec.Replicas = tc.deployment, ptr.To(int32(3))
			s := &scope{deployment: md, surge: 1, sets: tc.others}
			if tc.set != nil {
				s.sets = append(s.sets, tc.set)
			}
			if !tc.old {
				s.current = tc.set
			}
			if diff := cmp.Diff(tc.want, s.annotations(tc.set, !tc.old, tc.target)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDesiredOldSet checks that an old set gets everything from the deployment except its previous template.
func TestDesiredOldSet(t *testing.T) {
	md := machineDeployment(metav1.Time{})
	md.Spec.ClusterName, md.Spec.Replicas, md.Spec.Template.Spec.MinReadySeconds = "c", ptr.To(int32(3)), ptr.To(int32(5))
	md.Spec.Template.Labels = map[string]string{"tier": "two"}
	md.Spec.Template.Annotations = map[string]string{"note": "new"}
	md.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To(int32(9))
	md.Spec.Selector.MatchLabels = map[string]string{"tier": "two"}
	live := machineSet("old", 1, 2, func(m *clusterv1.MachineTemplateSpec) {
		m.Spec.Version, m.Labels = "v1.29.0", map[string]string{"tier": "one", "more": "labels", clusterv1.MachineDeploymentNameLabel: "md"}
	})
	live.Spec.Deletion.Order = clusterv1.OldestMachineSetDeletionOrder
	live.Labels = map[string]string{clusterv1.MachineDeploymentUniqueLabel: "1-abc"}
	live.Finalizers = []string{clusterv1.MachineSetTopologyFinalizer, "other"}
	live.Spec.Selector.MatchLabels = map[string]string{"tier": "one", clusterv1.MachineDeploymentUniqueLabel: "1-abc"}
	s := &scope{deployment: md, sets: []*clusterv1.MachineSet{live}}
	labels := map[string]string{
		"tier": "two", clusterv1.ClusterNameLabel: "c", clusterv1.MachineDeploymentNameLabel: "md", clusterv1.MachineDeploymentUniqueLabel: "1-abc",
	}
	want := &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "old", Labels: labels, Finalizers: []string{clusterv1.MachineSetTopologyFinalizer},
			Annotations:     map[string]string{clusterv1.DesiredReplicasAnnotation: "3", clusterv1.MaxReplicasAnnotation: "3"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(md, clusterv1.GroupVersion.WithKind("MachineDeployment"))},
		},
		Spec: clusterv1.MachineSetSpec{
			ClusterName: "c", Replicas: ptr.To(int32(1)), Deletion: clusterv1.MachineSetDeletionSpec{Order: "Random"}, Selector: *live.Spec.Selector.DeepCopy(),
			Template: template(func(m *clusterv1.MachineTemplateSpec) {
				m.Spec.Version, m.Spec.MinReadySeconds = "v1.29.0", ptr.To(int32(5))
				m.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To(int32(9))
				m.Annotations = map[string]string{"note": "new"}
				// The selector does not change, so the label that it matches is kept.
				m.Labels = map[string]string{
					"tier": "one", clusterv1.ClusterNameLabel: "c", clusterv1.MachineDeploymentNameLabel: "md", clusterv1.MachineDeploymentUniqueLabel: "1-abc",
				}
			}),
		},
	}
	if diff := cmp.Diff(want, s.desired(live, rollout.Target{Replicas: 1})); diff != "" {
		t.Errorf("old MachineSet (-want +got):\n%s", diff)
	}
	md.Spec.Template.Spec.MinReadySeconds, want.Spec.Template.Spec.MinReadySeconds = ptr.To(int32(0)), nil
	if diff := cmp.Diff(want, s.desired(live, rollout.Target{Replicas: 1})); diff != "" {
		t.Errorf("old MachineSet without minReadySeconds, which is zero (-want +got):\n%s", diff)
	}
	delete(live.Spec.Template.Labels, clusterv1.MachineDeploymentNameLabel)
	delete(want.Spec.Template.Labels, clusterv1.MachineDeploymentNameLabel)
	live.Spec.Deletion.Order, want.Spec.Deletion.Order = "", ""
	if diff := cmp.Diff(want, s.desired(live, rollout.Target{Replicas: 1})); diff != "" {
		t.Errorf("MachineSet of another version of Cluster API (-want +got):\n%s", diff)
	}
	live.Spec.Deletion.Order = clusterv1.RandomMachineSetDeletionOrder
	if diff := cmp.Diff(want, s.desired(live, rollout.Target{Replicas: 1})); diff != "" {
		t.Errorf("the order of a webhook (-want +got):\n%s", diff)
	}
	live.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: fieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(
		`{"f:spec":{"f:deletePolicy":{}}}`)}}
	want.Spec.Deletion.Order = clusterv1.RandomMachineSetDeletionOrder
	if diff := cmp.Diff(want, s.desired(live, rollout.Target{Replicas: 1})); diff != "" {
		t.Errorf("the order that we have set (-want +got):\n%s", diff)
	}
}
