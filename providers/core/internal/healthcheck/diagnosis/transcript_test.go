package diagnosis_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/healthcheck/diagnosis"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// story is a cluster whose Machines fail and recover while time passes. Its marks are written like the controller does.
type story struct {
	*testing.T
	build    object.Builder
	now      time.Time
	in       diagnosis.Input
	machines map[string]*clusterv1.Machine
	nodes    map[string]*corev1.Node
	cut      bool
}

// TestTranscripts runs the stories in testdata. The lines after "plan" are what is expected.
func TestTranscripts(t *testing.T) {
	raw, err := os.ReadFile("testdata/stories.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range strings.Split(string(raw), "case ")[1:] {
		name, lines, _ := strings.Cut(text, "\n")
		t.Run(name, func(t *testing.T) { newStory(t).run(lines) })
	}
}

func newStory(t *testing.T) *story {
	s := &story{T: t, now: object.Now(), machines: map[string]*clusterv1.Machine{}, nodes: map[string]*corev1.Node{}}
	s.in.Cluster = s.build.Cluster(object.InfrastructureReady, object.Initialized)
	s.in.Check = s.build.MachineHealthCheck("h")
	return s
}

// run executes the commands of a story, and compares the plans.
func (s *story) run(text string) {
	s.Helper()
	var expected, got []string
	reading := false
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		switch {
		case line == "":
			reading = false
		case line == "plan":
			reading = true
			expected, got = append(expected, "plan"), append(got, "plan")
			got = append(got, s.plan()...)
		case reading:
			expected = append(expected, line)
		default:
			s.command(strings.Fields(line))
		}
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		s.Errorf("-want +got:\n%s", diff)
	}
}

func (s *story) command(words []string) {
	spec, args := &s.in.Check.Spec, words[1:]
	switch words[0] {
	case "bad":
		spec.Checks.UnhealthyNodeConditions = append(spec.Checks.UnhealthyNodeConditions, clusterv1.UnhealthyNodeCondition{
			Type: corev1.NodeConditionType(args[0]), Status: corev1.ConditionStatus(args[1]),
			TimeoutSeconds: ptr.To(int32(s.duration(args[2]) / time.Second)),
		})
	case "badmachine":
		spec.Checks.UnhealthyMachineConditions = append(spec.Checks.UnhealthyMachineConditions, clusterv1.UnhealthyMachineCondition{
			Type: args[0], Status: metav1.ConditionStatus(args[1]), TimeoutSeconds: ptr.To(int32(s.duration(args[2]) / time.Second)),
		})
	case "max":
		spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = ptr.To(intstr.Parse(args[0]))
	case "range":
		spec.Remediation.TriggerIf.UnhealthyInRange = args[0]
	case "startup":
		spec.Checks.NodeStartupTimeoutSeconds = ptr.To(int32(s.duration(args[0]) / time.Second))
	case "external":
		spec.Remediation.TemplateRef = clusterv1.MachineHealthCheckRemediationTemplateReference{Kind: "FixTemplate", Name: "f"}
	case "uninitialized":
		s.in.Cluster.SetV1Beta1Conditions(nil)
	case "unprovisioned":
		s.in.Cluster.Status.Initialization.InfrastructureProvisioned = nil
	case "initialized":
		condition.Set(s.in.Cluster, condition.True(clusterv1.ControlPlaneInitializedV1Beta1Condition))
		condition.Stamp(s.in.Cluster, nil, s.now)
	case "cut", "restored":
		s.cut = words[0] == "cut"
	case "after":
		s.now = s.now.Add(s.duration(args[0]))
	default:
		for _, name := range args {
			s.event(words[0], name)
		}
	}
}

// event is one that concerns a Machine.
func (s *story) event(what, name string) {
	m := s.machines[name]
	if m == nil {
		m = s.build.Machine(name, func(m *clusterv1.Machine) { m.CreationTimestamp = metav1.NewTime(s.now) })
		s.machines[name] = m
	}
	switch what {
	case "create":
	case "join", "ready":
		object.WithNode(name)(m)
		condition.Set(m, condition.True(clusterv1.MachineNodeHealthyV1Beta1Condition))
		s.node(name, corev1.ConditionTrue)
	case "settle":
		object.WithNode(name)(m)
		condition.Set(m, condition.True(clusterv1.MachineNodeHealthyV1Beta1Condition))
		condition.Stamp(m, nil, s.now)
		s.node(name, corev1.ConditionTrue)
	case "unknown":
		s.node(name, corev1.ConditionUnknown)
	case "plane":
		object.ControlPlane(m)
	case "provisioned":
		before := m.GetV1Beta1Conditions()
		condition.Set(m, condition.True(clusterv1.InfrastructureReadyV1Beta1Condition))
		condition.Stamp(m, before, s.now)
	case "lose":
		delete(s.nodes, name)
	case "delete":
		object.Deleting(m)
	case "gone":
		delete(s.machines, name)
	case "annotate":
		m.Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: ""}
	case "skip":
		m.Annotations = map[string]string{clusterv1.MachineSkipRemediationAnnotation: ""}
	case "detach":
		s.condition(m, metav1.ConditionFalse, "Detached")
	case "attach":
		s.condition(m, metav1.ConditionTrue, "Attached")
	case "hide":
		s.condition(m, metav1.ConditionUnknown, "ConnectionDown")
	case "fail":
		older := m.GetV1Beta1Status()
		older.FailureMessage = ptr.To("no quota")
		m.SetV1Beta1Status(older)
	case "progress":
		condition.Set(m, condition.False(clusterv1.MachineOwnerRemediatedV1Beta1Condition, clusterv1.ConditionSeverityWarning,
			clusterv1.RemediationInProgressV1Beta1Reason, ""))
	default:
		s.Fatalf("unknown event %q", what)
	}
}

// condition sets the condition NetworkReady of a Machine.
func (s *story) condition(m *clusterv1.Machine, status metav1.ConditionStatus, reason string) {
	apimeta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
		Type: "NetworkReady", Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(s.now),
	})
}

func (s *story) node(name string, status corev1.ConditionStatus) {
	s.nodes[name] = object.Node(name, func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(s.now)}}
	})
}

func (s *story) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.Fatal(err)
	}
	return d
}

// plan diagnoses the Machines, writes the marks, and describes both.
func (s *story) plan() []string {
	in := s.in
	in.Now, in.Nodes, in.Targets = s.now, s.nodes, nil
	if s.cut {
		in.Nodes = nil
	}
	selects, err := diagnosis.Selector(in.Check)
	if err != nil {
		s.Fatal(err)
	}
	for _, m := range s.machines {
		if selects(m) {
			in.Targets = append(in.Targets, m)
		}
	}
	slices.SortFunc(in.Targets, func(a, b *clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	p, err := diagnosis.New(in)
	if err != nil {
		return []string{err.Error()}
	}
	summary := fmt.Sprintf("%d of %d healthy, %d more allowed", p.Healthy, p.Expected, p.RemediationsAllowed())
	if !p.Allowed {
		summary = fmt.Sprintf("%d of %d healthy, blocked", p.Healthy, p.Expected)
	}
	if !p.Observed {
		summary += ", unreachable"
	}
	if next := p.Next(); !next.IsZero() {
		summary += fmt.Sprintf(", next in %s", next.Sub(s.now))
	}
	out := []string{summary}
	for _, f := range p.Findings {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", f.Machine.Name, f.Verdict, f.Reason, f.Message())))
	}
	for _, mark := range p.Marks() {
		out = append(out, s.write(mark))
	}
	if p.External {
		for _, m := range p.Remediable() {
			out = append(out, "request "+m.Name)
		}
	}
	return out
}

func (s *story) write(mark diagnosis.Mark) string {
	out := "mark " + mark.Machine.Name
	before := mark.Machine.GetV1Beta1Conditions()
	for _, c := range mark.Set {
		condition.Set(mark.Machine, c)
		out += fmt.Sprintf(" %s=%s", c.Type, c.Status)
	}
	for _, t := range mark.Remove {
		condition.Delete(mark.Machine, t)
		out += fmt.Sprintf(" -%s", t)
	}
	condition.Stamp(mark.Machine, before, s.now)
	return out
}
