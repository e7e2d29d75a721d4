package controlplane

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// fail sets the conditions of an unhealthy Machine, as a MachineHealthCheck does.
func (j *journey) fail(name string) {
	j.Helper()
	j.eventually("the conditions of the MachineHealthCheck", func() (bool, string) {
		m := &clusterv1.Machine{}
		j.must(j.Get(j.Context(), client.ObjectKey{Namespace: j.ns, Name: name}, m))
		before := m.DeepCopy()
		condition.Set(m, condition.False(clusterv1.MachineHealthCheckSucceededV1Beta1Condition, clusterv1.ConditionSeverityWarning, clusterv1.UnhealthyNodeConditionV1Beta1Reason, ""))
		condition.Set(m, condition.False(clusterv1.MachineOwnerRemediatedV1Beta1Condition, clusterv1.ConditionSeverityWarning, clusterv1.WaitingForRemediationV1Beta1Reason, ""))
		condition.Stamp(m, before.GetV1Beta1Conditions(), time.Now())
		err := j.Status().Patch(j.Context(), m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		return err == nil, "it cannot be written"
	})
}

func TestRemediationReplacesAMachine(t *testing.T) {
	j := newJourney(t)
	j.apply(3)
	j.awaitRollout(3, anyMachine)
	broken := j.machines()[1].Name
	j.workload.Gone(broken)
	j.fail(broken)
	j.eventually("the unhealthy Machine being deleted", func() (bool, string) {
		m := &clusterv1.Machine{}
		j.must(j.Get(t.Context(), client.ObjectKey{Namespace: j.ns, Name: broken}, m))
		c := condition.Get(m, clusterv1.MachineOwnerRemediatedV1Beta1Condition)
		return m.DeletionTimestamp != nil && c != nil && c.Reason == clusterv1.RemediationInProgressV1Beta1Reason, "it is not"
	})
	if most, least := j.awaitRollout(3, func(m clusterv1.Machine) bool { return m.Name != broken }); most > 3 || least < 2 {
		t.Errorf("there were %d to %d Machines on the way, want 2 to 3", least, most)
	}
	if !slices.Contains(j.workload.Actions(), "remove "+broken) {
		t.Errorf("its etcd member was not removed: %v", j.workload.Actions())
	}
	kcp := j.kcp()
	if last := kcp.Status.LastRemediation; last.Machine != broken || ptr.Deref(last.RetryCount, 1) != 0 {
		t.Errorf("last remediation: %+v", last)
	}
	if _, ok := kcp.Annotations[controlplanev1.RemediationInProgressAnnotation]; ok {
		t.Error("the remediation is still recorded as in progress")
	}
	if !slices.ContainsFunc(j.machines(), func(m clusterv1.Machine) bool {
		return strings.Contains(m.Annotations[controlplanev1.RemediationForAnnotation], broken)
	}) {
		t.Error("no Machine is recorded as the replacement")
	}
}

func TestTheOnlyMachineIsNotRemediated(t *testing.T) {
	j := newJourney(t)
	j.apply(1)
	j.awaitRollout(1, anyMachine)
	only := j.machines()[0].Name
	j.fail(only)
	j.eventually("the reason being reported", func() (bool, string) {
		c := condition.Get(&j.machines()[0], clusterv1.MachineOwnerRemediatedV1Beta1Condition)
		return c != nil && strings.Contains(c.Message, "only Machine"), "it is not"
	})
	if m := j.machines()[0]; m.DeletionTimestamp != nil {
		t.Error("the only Machine is deleted")
	}
}
