package machine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestHooks(t *testing.T) {
	const preDrain, preTerminate = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/a", clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/b"
	nodeDeleting := condition.False(clusterv1.MachineNodeHealthyV1Beta1Condition, clusterv1.ConditionSeverityInfo, clusterv1.DeletingV1Beta1Reason, "")
	drained, detached := condition.True(clusterv1.DrainingSucceededV1Beta1Condition), condition.True(clusterv1.VolumeDetachSucceededV1Beta1Condition)
	held := func(t clusterv1.ConditionType, hook string) clusterv1.Condition {
		return condition.False(t, clusterv1.ConditionSeverityInfo, clusterv1.WaitingExternalHookV1Beta1Reason, "Waiting for annotation %s to be removed", hook)
	}
	before, after := clusterv1.PreDrainDeleteHookSucceededV1Beta1Condition, clusterv1.PreTerminateDeleteHookSucceededV1Beta1Condition
	begins := metav1.NewTime(now.UTC().Truncate(time.Second))
	cases := map[string]struct {
		reason  string
		machine *clusterv1.Machine
		want    clusterv1.Conditions
		waits   bool
		// since are the hooks whose wait status.deletion records.
		since clusterv1.MachineDeletionStatus
	}{
		"None":         {"no hook is set", machine(withNode), clusterv1.Conditions{drained, nodeDeleting, condition.True(before), condition.True(after), detached}, false, clusterv1.MachineDeletionStatus{NodeDrainStartTime: begins}},
		"PreDrain":     {"the pre-drain hook blocks all steps", machine(withNode, annotated(preDrain, ""), annotated(preTerminate, "")), clusterv1.Conditions{held(before, preDrain)}, true, clusterv1.MachineDeletionStatus{WaitForPreDrainHookStartTime: begins}},
		"PreTerminate": {"the Node is drained, the pre-terminate hook blocks the rest", machine(withNode, annotated(preTerminate, "")), clusterv1.Conditions{drained, condition.True(before), held(after, preTerminate), detached}, true, clusterv1.MachineDeletionStatus{NodeDrainStartTime: begins, WaitForPreTerminateHookStartTime: begins}},
		"WithoutNode":  {"without Node, the pre-drain hook is ignored, and the pre-terminate hook counts", machine(annotated(preDrain, ""), annotated(preTerminate, "")), clusterv1.Conditions{held(after, preTerminate)}, true, clusterv1.MachineDeletionStatus{WaitForPreTerminateHookStartTime: begins}},
		"NoNode":       {"there is neither a Node nor a hook", machine(), clusterv1.Conditions{nodeDeleting, condition.True(after)}, false, clusterv1.MachineDeletionStatus{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, machine(named("cp-1"), object.ControlPlane), infraMachine(nil))
			s := &scope{machine: tc.machine, cluster: build.Cluster()}
			r, err := steptest.Run(t.Context(), tc.machine, s, w.declared().Deletion[:3]...)
			if err != nil || r.Ends() != tc.waits {
				t.Errorf("%s: waits for %q, err = %v", tc.reason, r.Waiting(), err)
			}
			if diff := cmp.Diff(tc.want, tc.machine.GetV1Beta1Conditions()); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.since, ptr.Deref(tc.machine.Status.Deletion, clusterv1.MachineDeletionStatus{})); diff != "" {
				t.Errorf("%s, status.deletion -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
