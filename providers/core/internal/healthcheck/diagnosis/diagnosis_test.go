package diagnosis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/healthcheck/diagnosis"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var build object.Builder

func TestLimits(t *testing.T) {
	number := func(text string) *intstr.IntOrString { return ptr.To(intstr.Parse(text)) }
	tests := []struct {
		reason   string
		max      *intstr.IntOrString
		in       string
		expected int
		want     diagnosis.Limit
		err      string
	}{
		{reason: "the default allows everything", expected: 7, want: diagnosis.Limit{Max: 7, Field: "maxUnhealthy 100%"}},
		{reason: "a number", max: number("2"), expected: 7, want: diagnosis.Limit{Max: 2, Field: "maxUnhealthy 2"}},
		{reason: "a percentage is rounded down", max: number("40%"), expected: 7, want: diagnosis.Limit{Max: 2, Field: "maxUnhealthy 40%"}},
		{reason: "40% of one Machine is none", max: number("40%"), expected: 1, want: diagnosis.Limit{Field: "maxUnhealthy 40%"}},
		{reason: "a negative number allows none", max: number("-3"), expected: 7, want: diagnosis.Limit{Field: "maxUnhealthy -3"}},
		{reason: "neither number nor percentage", max: number("some"), err: `invalid spec.maxUnhealthy "some"`},
		{reason: "the range wins", max: number("1"), in: "[3-5]", want: diagnosis.Limit{Min: 3, Max: 5, Field: "unhealthyRange [3-5]"}},
		{reason: "a reversed range", in: "[5-3]", err: "the first number must not be greater"},
		{reason: "half a range", in: "[5]", err: "must be two numbers"},
		{reason: "no range at all", in: "3-5", err: "must be two numbers"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			spec := &clusterv1.MachineHealthCheckSpec{}
			spec.Remediation.TriggerIf = clusterv1.MachineHealthCheckRemediationTriggerIf{
				UnhealthyLessThanOrEqualTo: tt.max, UnhealthyInRange: tt.in,
			}
			got, err := diagnosis.LimitOf(spec, tt.expected)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("%v; -want +got:\n%s", err, diff)
			}
		})
	}
}

// TestOrderOfChecks removes one problem after another from a Machine that has all of them.
func TestOrderOfChecks(t *testing.T) {
	check := build.MachineHealthCheck("h", func(h *clusterv1.MachineHealthCheck) {
		h.Spec.Checks.UnhealthyNodeConditions = []clusterv1.UnhealthyNodeCondition{{Type: "Ready", Status: "False", TimeoutSeconds: ptr.To[int32](60)}}
	})
	bad := object.Node("a", func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: "Ready", Status: "False", LastTransitionTime: metav1.NewTime(object.Now().Add(-time.Hour))}}
	})
	m := build.Machine("a", object.WithNode("a"), func(m *clusterv1.Machine) {
		m.CreationTimestamp = metav1.NewTime(object.Now().Add(-24 * time.Hour))
		m.Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: "false"} // The value does not matter.
		m.SetV1Beta1Status(clusterv1.MachineV1Beta1DeprecatedStatus{FailureReason: ptr.To("CreateError"), FailureMessage: ptr.To("failed")})
	})
	in := diagnosis.Input{
		Check: check, Cluster: build.Cluster(object.Initialized), Targets: []*clusterv1.Machine{m}, Nodes: map[string]*corev1.Node{}, Now: object.Now(),
	}
	steps := []struct {
		solve func()
		want  string
	}{
		{func() {}, "Unhealthy HasRemediateMachineAnnotation"},
		{func() { m.Annotations = nil }, "Unhealthy MachineHasFailure"},
		{func() { m.Status.Deprecated.V1Beta1.FailureReason = nil }, "Unhealthy MachineHasFailure"},
		{func() { m.Status.Deprecated.V1Beta1.FailureMessage = nil }, "Unhealthy NodeNotFound"},
		{func() { in.Nodes["a"] = bad }, "Unknown "},
		{func() { in.Cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true) }, "Unhealthy UnhealthyNode"},
		{func() { m.Status.NodeRef = clusterv1.MachineNodeReference{} }, "Starting "}, // Since the control plane was initialized.
		{func() { in.Now = in.Now.Add(11 * time.Minute) }, "Unhealthy NodeStartupTimeout"},
		{func() { object.Deleting(m) }, "Deleting "},
	}
	for _, s := range steps {
		s.solve()
		p, err := diagnosis.New(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(p.Findings[0].Verdict) + " " + p.Findings[0].Reason; got != s.want {
			t.Errorf("got %q, want %q", got, s.want)
		}
	}
}

func TestSelector(t *testing.T) {
	check := build.MachineHealthCheck("h", func(h *clusterv1.MachineHealthCheck) { h.Spec.Selector.MatchLabels = map[string]string{"pool": "x"} })
	labels := func(m *clusterv1.Machine) { m.Labels["pool"] = "x" }
	tests := []struct {
		reason            string
		machine           *clusterv1.Machine
		selected, targets bool
	}{
		{"label and Cluster match", build.Machine("a", labels), true, true},
		{"the label is missing", build.Machine("a"), false, false},
		{"another Cluster", build.Machine("a", labels, func(m *clusterv1.Machine) { m.Spec.ClusterName = "o" }), false, false},
		{"the label of another Cluster", build.Machine("a", labels, func(m *clusterv1.Machine) { m.Labels[clusterv1.ClusterNameLabel] = "o" }), false, false},
		{"another namespace", build.Machine("a", labels, func(m *clusterv1.Machine) { m.Namespace = "o" }), false, false},
		{"a paused Machine is exempt", build.Machine("a", labels, func(m *clusterv1.Machine) { m.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} }), true, false},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			targets, err := diagnosis.Selector(check)
			if err != nil {
				t.Fatal(err)
			}
			if got := diagnosis.Selects(check, tt.machine); got != tt.selected {
				t.Errorf("selected: %t", got)
			}
			if got := targets(tt.machine); got != tt.targets {
				t.Errorf("target: %t", got)
			}
		})
	}
	empty := build.MachineHealthCheck("h", func(h *clusterv1.MachineHealthCheck) { h.Spec.Selector = metav1.LabelSelector{} })
	if diagnosis.Selects(empty, build.Machine("a")) {
		t.Error("an empty selector must select nothing")
	}
}
