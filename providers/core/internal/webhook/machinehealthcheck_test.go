package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// healthCheck returns a MachineHealthCheck with all defaults, changed by change.
func healthCheck(change ...func(*clusterv1.MachineHealthCheck)) *clusterv1.MachineHealthCheck {
	mhc := &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "h", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: "c", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Checks:      clusterv1.MachineHealthCheckChecks{UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}, NodeStartupTimeoutSeconds: ptr.To[int32](600)},
			Remediation: clusterv1.MachineHealthCheckRemediation{TriggerIf: clusterv1.MachineHealthCheckRemediationTriggerIf{UnhealthyLessThanOrEqualTo: ptr.To(intstr.FromString("100%"))}},
		},
	}
	for _, f := range change {
		f(mhc)
	}
	return mhc
}

func withStartupTimeout(seconds int32) func(*clusterv1.MachineHealthCheck) {
	return func(mhc *clusterv1.MachineHealthCheck) { mhc.Spec.Checks.NodeStartupTimeoutSeconds = &seconds }
}

func withRemediation(mhc *clusterv1.MachineHealthCheck) {
	mhc.Spec.Remediation.TemplateRef = clusterv1.MachineHealthCheckRemediationTemplateReference{APIVersion: "g/v1", Kind: "K", Name: "r"}
}

func TestMachineHealthCheckDefault(t *testing.T) {
	cases := map[string]struct {
		reason    string
		mhc, want *clusterv1.MachineHealthCheck
	}{
		"Complete": {reason: "all defaults are set already", mhc: healthCheck(withStartupTimeout(0)), want: healthCheck(withStartupTimeout(0))},
		"Bare": {
			reason: "label, limit and timeout are set", want: healthCheck(withRemediation),
			mhc: healthCheck(withRemediation, func(mhc *clusterv1.MachineHealthCheck) {
				mhc.Labels, mhc.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo, mhc.Spec.Checks.NodeStartupTimeoutSeconds = nil, nil, nil
			}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := (MachineHealthCheck{}).Default(t.Context(), tc.mhc); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.mhc); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMachineHealthCheckValidate(t *testing.T) {
	const prefix = `MachineHealthCheck.cluster.x-k8s.io "h" is invalid: `
	selecting := func(s metav1.LabelSelector) func(*clusterv1.MachineHealthCheck) {
		return func(mhc *clusterv1.MachineHealthCheck) { mhc.Spec.Selector = s }
	}
	cases := map[string]struct {
		reason   string
		old, mhc *clusterv1.MachineHealthCheck
		want     string
	}{
		"Valid":    {reason: "the MachineHealthCheck is valid", mhc: healthCheck(withRemediation)},
		"Disabled": {reason: "zero disables the timeout", mhc: healthCheck(withStartupTimeout(0))},
		"Minimum":  {reason: "30 seconds is the minimum", mhc: healthCheck(withStartupTimeout(30))},
		"TooShort": {reason: "29 seconds is below the minimum", mhc: healthCheck(withStartupTimeout(29)),
			want: prefix + `spec.checks.nodeStartupTimeoutSeconds: Invalid value: 29: must be at least 30, or 0 to disable the timeout`},
		"NoSelector": {reason: "the selector is empty", mhc: healthCheck(selecting(metav1.LabelSelector{})),
			want: prefix + `spec.selector: Required value: must select the Machines to check`},
		"BadSelector": {reason: "the operator is unknown",
			mhc:  healthCheck(selecting(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}})),
			want: prefix + `spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Near"}]}: "Near" is not a valid label selector operator`},
		"OtherCluster": {reason: "the selector matches Machines of another Cluster", mhc: healthCheck(selecting(metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.ClusterNameLabel: "d"}})),
			want: prefix + `spec.selector.matchLabels[cluster.x-k8s.io/cluster-name]: Invalid value: "d": must be "c", the value of spec.clusterName: only Machines of that Cluster are checked`},
		"SameCluster": {reason: "the selector matches Machines of the same Cluster", mhc: healthCheck(selecting(metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.ClusterNameLabel: "c"}}))},
		"Limit": {reason: "the limit is neither a number nor a percentage", mhc: healthCheck(func(mhc *clusterv1.MachineHealthCheck) {
			mhc.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = ptr.To(intstr.FromString("some"))
		}),
			want: prefix + `spec.remediation.triggerIf.unhealthyLessThanOrEqualTo: Invalid value: "some": must be a number or a percentage`},
		"Negative": {reason: "no number of Machines is negative", mhc: healthCheck(func(mhc *clusterv1.MachineHealthCheck) {
			mhc.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = ptr.To(intstr.FromInt32(-1))
		}),
			want: prefix + `spec.remediation.triggerIf.unhealthyLessThanOrEqualTo: Invalid value: "-1": must not be negative`},
		"Range": {reason: "the range is reversed", mhc: healthCheck(func(mhc *clusterv1.MachineHealthCheck) { mhc.Spec.Remediation.TriggerIf.UnhealthyInRange = "[5-3]" }),
			want: prefix + `spec.remediation.triggerIf.unhealthyInRange: Invalid value: "[5-3]": must be two numbers in brackets, the first not greater than the second, such as [3-5]`},
		"ValidRange":   {reason: "the range is valid", mhc: healthCheck(func(mhc *clusterv1.MachineHealthCheck) { mhc.Spec.Remediation.TriggerIf.UnhealthyInRange = "[0-3]" })},
		"NoConditions": {reason: "a check without conditions finds Machines without a Node", mhc: healthCheck(func(mhc *clusterv1.MachineHealthCheck) { mhc.Spec.Checks.UnhealthyNodeConditions = nil })},
		"Nothing": {reason: "a check without conditions and timeout never finds anything", mhc: healthCheck(func(mhc *clusterv1.MachineHealthCheck) {
			mhc.Spec.Checks.UnhealthyNodeConditions, mhc.Spec.Checks.NodeStartupTimeoutSeconds = nil, nil
		}),
			want: prefix + `spec.checks.unhealthyNodeConditions: Required value: at least one condition or nodeStartupTimeoutSeconds is required`},
		"Machine": {reason: "conditions of Machines are validated", mhc: healthCheck(func(mhc *clusterv1.MachineHealthCheck) {
			mhc.Spec.Checks.UnhealthyMachineConditions = []clusterv1.UnhealthyMachineCondition{{Type: "Ready", Status: metav1.ConditionFalse}}
		}),
			want: prefix + `spec.checks.unhealthyMachineConditions[0].type: Invalid value: "Ready": must not be one of: Ready, Available, HealthCheckSucceeded, OwnerRemediated, ExternallyRemediated: they depend on the health check`},
		"Status": {reason: "the status of a condition is one of three", mhc: healthCheck(func(mhc *clusterv1.MachineHealthCheck) { mhc.Spec.Checks.UnhealthyNodeConditions[0].Status = "Bad" }),
			want: prefix + `spec.checks.unhealthyNodeConditions[0].status: Unsupported value: "Bad": supported values: "True", "False", "Unknown"`},
		"Timeout": {reason: "a timeout is not negative", mhc: healthCheck(func(mhc *clusterv1.MachineHealthCheck) {
			mhc.Spec.Checks.UnhealthyNodeConditions[0].TimeoutSeconds = ptr.To[int32](-1)
		}),
			want: prefix + `spec.checks.unhealthyNodeConditions[0].timeoutSeconds: Invalid value: -1: must not be negative`},
		"Cluster": {reason: "the Cluster cannot be changed", old: healthCheck(), mhc: healthCheck(func(mhc *clusterv1.MachineHealthCheck) { mhc.Spec.ClusterName = "d" }),
			want: prefix + `spec.clusterName: Forbidden: cannot be changed: create a new object for the other Cluster`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var err error
			if tc.old == nil {
				_, err = MachineHealthCheck{}.ValidateCreate(t.Context(), tc.mhc)
			} else {
				_, err = MachineHealthCheck{}.ValidateUpdate(t.Context(), tc.old, tc.mhc)
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
