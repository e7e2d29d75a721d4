package webhook

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// healthCheck returns a MachineHealthCheck with all defaults, changed by change.
func healthCheck(change ...func(*clusterv1.MachineHealthCheck)) *clusterv1.MachineHealthCheck {
	mhc := &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "h", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: "c", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			UnhealthyConditions: []clusterv1.UnhealthyCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}},
			MaxUnhealthy:        ptr.To(intstr.FromString("100%")), NodeStartupTimeout: &metav1.Duration{Duration: 10 * time.Minute},
		},
	}
	for _, f := range change {
		f(mhc)
	}
	return mhc
}

func withStartupTimeout(d time.Duration) func(*clusterv1.MachineHealthCheck) {
	return func(mhc *clusterv1.MachineHealthCheck) { mhc.Spec.NodeStartupTimeout = &metav1.Duration{Duration: d} }
}

func withRemediation(namespace string) func(*clusterv1.MachineHealthCheck) {
	return func(mhc *clusterv1.MachineHealthCheck) {
		mhc.Spec.RemediationTemplate = &corev1.ObjectReference{Name: "r", Namespace: namespace}
	}
}

func TestMachineHealthCheckDefault(t *testing.T) {
	cases := map[string]struct {
		reason    string
		mhc, want *clusterv1.MachineHealthCheck
	}{
		"Complete": {reason: "all defaults are set already", mhc: healthCheck(withStartupTimeout(0)), want: healthCheck(withStartupTimeout(0))},
		"Bare": {
			reason: "label, limit, timeout and namespace are set", want: healthCheck(withRemediation("n")),
			mhc: healthCheck(withRemediation(""), func(mhc *clusterv1.MachineHealthCheck) {
				mhc.Labels, mhc.Spec.MaxUnhealthy, mhc.Spec.NodeStartupTimeout = nil, nil, nil
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
		"Valid":    {reason: "the MachineHealthCheck is valid", mhc: healthCheck(withRemediation("n"))},
		"Disabled": {reason: "zero disables the timeout", mhc: healthCheck(withStartupTimeout(0))},
		"Minimum":  {reason: "30 seconds is the minimum", mhc: healthCheck(withStartupTimeout(30 * time.Second))},
		"TooShort": {reason: "29 seconds is below the minimum", mhc: healthCheck(withStartupTimeout(29 * time.Second)),
			want: prefix + `spec.nodeStartupTimeout: Invalid value: "29s": must be at least 30s, or 0 to disable the timeout`},
		"NoSelector": {reason: "the selector is empty", mhc: healthCheck(selecting(metav1.LabelSelector{})),
			want: prefix + `spec.selector: Required value: must select the Machines to check`},
		"BadSelector": {reason: "the operator is unknown",
			mhc:  healthCheck(selecting(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}})),
			want: prefix + `spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Near"}]}: "Near" is not a valid label selector operator`},
		"OtherCluster": {reason: "the selector matches Machines of another Cluster", mhc: healthCheck(selecting(metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.ClusterNameLabel: "d"}})),
			want: prefix + `spec.selector.matchLabels[cluster.x-k8s.io/cluster-name]: Invalid value: "d": must be "c", the value of spec.clusterName: only Machines of that Cluster are checked`},
		"SameCluster": {reason: "the selector matches Machines of the same Cluster", mhc: healthCheck(selecting(metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.ClusterNameLabel: "c"}}))},
		"Limit": {reason: "the limit is neither a number nor a percentage", mhc: healthCheck(func(mhc *clusterv1.MachineHealthCheck) { mhc.Spec.MaxUnhealthy = ptr.To(intstr.FromString("some")) }),
			want: prefix + `spec.maxUnhealthy: Invalid value: "some": must be a number or a percentage`},
		"Negative": {reason: "no number of Machines is negative", mhc: healthCheck(func(mhc *clusterv1.MachineHealthCheck) { mhc.Spec.MaxUnhealthy = ptr.To(intstr.FromInt32(-1)) }),
			want: prefix + `spec.maxUnhealthy: Invalid value: "-1": must not be negative`},
		"Range": {reason: "the range is reversed", mhc: healthCheck(func(mhc *clusterv1.MachineHealthCheck) { mhc.Spec.UnhealthyRange = ptr.To("[5-3]") }),
			want: prefix + `spec.unhealthyRange: Invalid value: "[5-3]": must be two numbers in brackets, the first not greater than the second, such as [3-5]`},
		"ValidRange":   {reason: "the range is valid", mhc: healthCheck(func(mhc *clusterv1.MachineHealthCheck) { mhc.Spec.UnhealthyRange = ptr.To("[0-3]") })},
		"NoConditions": {reason: "a check without conditions finds Machines without a Node", mhc: healthCheck(func(mhc *clusterv1.MachineHealthCheck) { mhc.Spec.UnhealthyConditions = nil })},
		"Nothing": {reason: "a check without conditions and timeout never finds anything", mhc: healthCheck(func(mhc *clusterv1.MachineHealthCheck) {
			mhc.Spec.UnhealthyConditions, mhc.Spec.NodeStartupTimeout = nil, nil
		}),
			want: prefix + `spec.unhealthyConditions: Required value: at least one condition or nodeStartupTimeout is required`},
		"Machine": {reason: "conditions of Machines are validated", mhc: healthCheck(func(mhc *clusterv1.MachineHealthCheck) {
			mhc.Spec.UnhealthyMachineConditions = []clusterv1.UnhealthyMachineCondition{{Type: "Ready", Status: metav1.ConditionFalse}}
		}),
			want: prefix + `spec.unhealthyMachineConditions[0].type: Invalid value: "Ready": must not be one of: Ready, Available, HealthCheckSucceeded, OwnerRemediated, ExternallyRemediated: they depend on the health check`},
		"Status": {reason: "the status of a condition is one of three", mhc: healthCheck(func(mhc *clusterv1.MachineHealthCheck) { mhc.Spec.UnhealthyConditions[0].Status = "Bad" }),
			want: prefix + `spec.unhealthyConditions[0].status: Unsupported value: "Bad": supported values: "True", "False", "Unknown"`},
		"Timeout": {reason: "a timeout is not negative", mhc: healthCheck(func(mhc *clusterv1.MachineHealthCheck) {
			mhc.Spec.UnhealthyConditions[0].Timeout.Duration = -time.Second
		}),
			want: prefix + `spec.unhealthyConditions[0].timeout: Invalid value: "-1s": must not be negative`},
		"Template": {reason: "references must not leave the namespace", mhc: healthCheck(withRemediation("o")),
			want: prefix + `spec.remediationTemplate.namespace: Invalid value: "o": must be "n", the namespace of the object that refers to it`},
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
