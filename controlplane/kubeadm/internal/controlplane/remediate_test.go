package controlplane

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
)

// fail plays a health check that finds a Machine unhealthy.
func (j *journey) fail(name string) {
	j.Helper()
	j.eventually("the health check's verdict", func() (bool, string) {
		m := &clusterv1.Machine{}
		j.must(j.Get(j.Context(), client.ObjectKey{Namespace: j.ns, Name: name}, m))
		before := m.DeepCopy()
		condition.Set(m, condition.False(clusterv1.MachineHealthCheckSucceededCondition, clusterv1.ConditionSeverityWarning, clusterv1.UnhealthyNodeConditionReason, ""))
		condition.Set(m, condition.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.ConditionSeverityWarning, clusterv1.WaitingForRemediationReason, ""))
		condition.Stamp(m, before.Status.Conditions, time.Now())
		err := j.Status().Patch(j.Context(), m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		return err == nil, "it cannot be written"
	})
}

func TestRemediationReplacesAMachine(t *testing.T) {
	j := newJourney(t)
	j.apply(3)
	j.settle(3, anyMachine)
	broken := j.machines()[1].Name
	j.workload.gone(broken)
	j.fail(broken)
	j.eventually("the unhealthy Machine being deleted", func() (bool, string) {
		m := &clusterv1.Machine{}
		j.must(j.Get(t.Context(), client.ObjectKey{Namespace: j.ns, Name: broken}, m))
		c := condition.Get(m, clusterv1.MachineOwnerRemediatedCondition)
		return m.DeletionTimestamp != nil && c != nil && c.Reason == clusterv1.RemediationInProgressReason, "it is not"
	})
	if most, least := j.settle(3, func(m clusterv1.Machine) bool { return m.Name != broken }); most > 3 || least < 2 {
		t.Errorf("there were %d to %d Machines on the way, want 2 to 3", least, most)
	}
	if !slices.Contains(j.workload.actions(), "remove "+broken) {
		t.Errorf("its etcd member stays: %v", j.workload.actions())
	}
	kcp := j.kcp()
	if last := kcp.Status.LastRemediation; last == nil || last.Machine != broken || last.RetryCount != 0 {
		t.Errorf("last remediation: %+v", last)
	}
	if _, ok := kcp.Annotations[controlplanev1.RemediationInProgressAnnotation]; ok {
		t.Error("the remediation is still under way after its end")
	}
	if !slices.ContainsFunc(j.machines(), func(m clusterv1.Machine) bool {
		return strings.Contains(m.Annotations[controlplanev1.RemediationForAnnotation], broken)
	}) {
		t.Error("no Machine is on record as the replacement")
	}
}

func TestTheOnlyMachineIsNotRemediated(t *testing.T) {
	j := newJourney(t)
	j.apply(1)
	j.settle(1, anyMachine)
	only := j.machines()[0].Name
	j.fail(only)
	j.eventually("the reason being stated", func() (bool, string) {
		c := condition.Get(&j.machines()[0], clusterv1.MachineOwnerRemediatedCondition)
		return c != nil && strings.Contains(c.Message, "only Machine"), "it is not"
	})
	if m := j.machines()[0]; m.DeletionTimestamp != nil {
		t.Error("the only Machine is deleted")
	}
}

func TestAttempt(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	remediated := func(ago time.Duration, retries string) map[string]string {
		return map[string]string{controlplanev1.RemediationForAnnotation: `{"machine":"old","timestamp":"` +
			now.Add(-ago).Format(time.RFC3339) + `","retryCount":` + retries + `}`}
	}
	cases := []struct {
		reason      string
		annotations map[string]string
		strategy    *controlplanev1.RemediationStrategy
		retry       int32
		wait        time.Duration
		postponed   bool
	}{
		{reason: "the first failure"},
		{reason: "a replacement that failed", annotations: remediated(time.Minute, "2"), retry: 3},
		{reason: "a replacement that lasted", annotations: remediated(2*time.Hour, "2")},
		{reason: "too soon", annotations: remediated(time.Minute, "0"), strategy: &controlplanev1.RemediationStrategy{RetryPeriod: metav1.Duration{Duration: 5 * time.Minute}}, postponed: true, wait: 4 * time.Minute},
		{reason: "too often", annotations: remediated(time.Minute, "3"), strategy: &controlplanev1.RemediationStrategy{MaxRetry: ptr.To[int32](3)}, postponed: true, wait: 59 * time.Minute},
		{
			reason: "a shorter healthy period makes it a new problem", annotations: remediated(time.Minute, "3"),
			strategy: &controlplanev1.RemediationStrategy{MaxRetry: ptr.To[int32](3), MinHealthyPeriod: &metav1.Duration{Duration: 30 * time.Second}},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			s := &scope{kcp: &controlplanev1.KubeadmControlPlane{}}
			s.kcp.Spec.RemediationStrategy = tc.strategy
			got, why := s.attempt(&machine{Machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", Annotations: tc.annotations}}}, now)
			if (why != nil) != tc.postponed || why != nil && why.after != tc.wait {
				t.Fatalf("%s: postponed %+v, want %t for %s", tc.reason, why, tc.postponed, tc.wait)
			}
			if why == nil && got.RetryCount != tc.retry {
				t.Errorf("%s: retry %d, want %d", tc.reason, got.RetryCount, tc.retry)
			}
		})
	}
}

func TestMayLose(t *testing.T) {
	up := func(node string, members ...string) EtcdMember {
		return EtcdMember{Node: node, Members: members, ClusterID: 1}
	}
	down := func(node string) EtcdMember { return EtcdMember{Node: node, Err: errors.New("no answer")} }
	abc := []string{"a", "b", "c"}
	cases := []struct {
		reason string
		asked  []EtcdMember
		lose   string
		want   bool
	}{
		{"all are well", []EtcdMember{up("a", abc...), up("b", abc...), up("c", abc...)}, "a", true},
		{"the one that goes is down", []EtcdMember{down("a"), up("b", abc...), up("c", abc...)}, "a", true},
		{"another one is down", []EtcdMember{up("a", abc...), down("b"), up("c", abc...)}, "a", false},
		{"another one was not asked", []EtcdMember{up("a", abc...), up("c", abc...)}, "a", false},
		{"another one has an alarm", []EtcdMember{up("a", abc...), {Node: "b", Members: abc, Alarms: []string{"NOSPACE"}}, up("c", abc...)}, "a", false},
		{"one lags behind and knows fewer", []EtcdMember{up("a", "a", "b"), up("b", abc...)}, "a", false},
		{"the last one", []EtcdMember{up("a", "a")}, "a", false},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			if got := etcdOf(tc.asked).mayLose(tc.lose); cmp.Diff(tc.want, got == "") != "" {
				t.Errorf("%s: it says %q", tc.reason, got)
			}
		})
	}
}
