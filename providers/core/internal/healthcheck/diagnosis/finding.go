package diagnosis

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// Verdict is what is known about the health of a Machine.
type Verdict string

const (
	// Healthy means that the Machine has a Node, and no check fails.
	Healthy Verdict = "Healthy"
	// Unhealthy means that a check has failed for long enough.
	Unhealthy Verdict = "Unhealthy"
	// Failing means that a condition of the Machine or its Node is bad, but not for long enough yet.
	Failing Verdict = "Failing"
	// Starting means that the Machine has no Node yet, or that it has one, but has not initialized the control plane yet.
	Starting Verdict = "Starting"
	// Unknown means that the Machine was not evaluated: its Node is unknown, or the Cluster is not ready for Nodes yet.
	Unknown Verdict = "Unknown"
	// Recovering means that the Machine is healthy, but was marked as unhealthy moments ago.
	Recovering Verdict = "Recovering"
	// Deleting means that the Machine is being deleted. It is neither healthy nor remediated.
	Deleting Verdict = "Deleting"
)

// firstMarkDelay is how long a new Machine must be healthy before it is marked as such: when its Node becomes ready, other controllers
// write its status several times, and would conflict.
const firstMarkDelay = 2 * time.Second

// recoveryDelay is how long a Machine stays marked as unhealthy at least.
const recoveryDelay = 10 * time.Second

// Finding is the result for one Machine.
type Finding struct {
	Machine *clusterv1.Machine
	Verdict Verdict
	// Reason is that of condition HealthCheckSucceeded in v1beta1 if the Machine is Unhealthy.
	Reason string
	// Problems are the checks that have failed for long enough if the Machine is Unhealthy, and the one that is due first if it is Failing.
	Problems []string
	// Due is when the result changes if nothing else does: a Failing or Starting Machine becomes Unhealthy, a Recovering one Healthy, and a
	// new Healthy one is marked. Zero: never.
	Due time.Time
}

// Message returns the problems as one line.
func (f Finding) Message() string { return strings.Join(f.Problems, "; ") }

// diagnose applies the checks of a Machine, and those of its Node. An annotation that requests remediation comes before all others.
func (in *Input) diagnose(m *clusterv1.Machine) Finding {
	if !m.DeletionTimestamp.IsZero() {
		return Finding{Machine: m, Verdict: Deleting}
	}
	if _, asked := m.Annotations[clusterv1.RemediateMachineAnnotation]; asked {
		return unhealthy(m, clusterv1.HasRemediateMachineAnnotationV1Beta1Reason, "marked for remediation via %s annotation",
			clusterv1.RemediateMachineAnnotation)
	}
	return in.machine(m).and(in.itsNode(m))
}

func unhealthy(m *clusterv1.Machine, reason, format string, args ...any) Finding {
	return Finding{Machine: m, Verdict: Unhealthy, Reason: reason, Problems: []string{fmt.Sprintf(format, args...)}}
}

// and returns the finding for a Machine whose conditions and whose Node were diagnosed. The reason is that of the Machine if both are
// unhealthy.
func (f Finding) and(node Finding) Finding {
	switch {
	case f.Verdict == Unhealthy:
		if node.Verdict == Unhealthy {
			f.Problems = append(f.Problems, node.Problems...)
		}
		return f
	case f.Verdict == Failing && node.Verdict != Unhealthy && (node.Verdict != Failing || f.Due.Before(node.Due)):
		if !node.Due.IsZero() && node.Due.Before(f.Due) {
			f.Due = node.Due
		}
		return f
	}
	return node
}

// machine checks how long the conditions of a Machine have been bad.
func (in *Input) machine(m *clusterv1.Machine) Finding {
	found := Finding{Machine: m, Verdict: Healthy}
	if _, plane := m.Labels[clusterv1.MachineControlPlaneLabel]; !plane && !in.ready() {
		return found // Workers cannot start yet.
	}
	for _, bad := range in.Check.Spec.Checks.UnhealthyMachineConditions {
		is := apimeta.FindStatusCondition(m.Status.Conditions, bad.Type)
		if is == nil || is.Status != bad.Status || in.hidden(is) {
			continue
		}
		found.add(in.Now, clusterv1.UnhealthyMachineV1Beta1Reason, observation{
			what: bad.Type + " on Machine", status: string(is.Status), reason: is.Reason, since: is.LastTransitionTime.Time,
			timeout: seconds(bad.TimeoutSeconds),
		})
	}
	return found
}

// hidden reports whether a condition is unknown while the workload cluster is unreachable: then the Machine may be well.
func (in *Input) hidden(c *metav1.Condition) bool {
	return c.Status == metav1.ConditionUnknown && in.Nodes == nil && Initialized(in.Cluster)
}

// ready reports whether workers of the Cluster can start.
func (in *Input) ready() bool {
	return Initialized(in.Cluster) && ptr.Deref(in.Cluster.Status.Initialization.InfrastructureProvisioned, false)
}

// itsNode applies the checks of a Machine's Node in the documented order; the first that fails decides.
func (in *Input) itsNode(m *clusterv1.Machine) Finding {
	initialized := Initialized(in.Cluster)
	if initialized && in.Nodes == nil {
		return Finding{Machine: m, Verdict: Unknown}
	}
	failed := m.GetV1Beta1Status()
	if r := failed.FailureReason; r != nil {
		return unhealthy(m, clusterv1.MachineHasFailureV1Beta1Reason, "status.failureReason is %s", condition.Brief(*r))
	}
	if r := failed.FailureMessage; r != nil {
		return unhealthy(m, clusterv1.MachineHasFailureV1Beta1Reason, "status.failureMessage is %q", condition.Brief(*r))
	}
	if _, first := m.Labels[clusterv1.MachineControlPlaneLabel]; !initialized && !first {
		return Finding{Machine: m, Verdict: Unknown} // Workers cannot join yet.
	}
	ref := &m.Status.NodeRef
	if initialized && ref.IsDefined() && in.Nodes[ref.Name] == nil {
		return unhealthy(m, clusterv1.NodeNotFoundV1Beta1Reason, "Node %s has been deleted", ref.Name)
	}
	if !ptr.Deref(in.Cluster.Status.Initialization.InfrastructureProvisioned, false) {
		return Finding{Machine: m, Verdict: Unknown}
	}
	if !ref.IsDefined() || !initialized {
		return in.starting(m)
	}
	return in.node(m, in.Nodes[ref.Name])
}

// starting checks how long a Machine has had no Node, since the latest of its creation and the moments at which its infrastructure and the
// Cluster became ready for Nodes. Before the control plane is initialized, its first Machine has that long to initialize it.
func (in *Input) starting(m *clusterv1.Machine) Finding {
	timeout := clusterv1.DefaultNodeStartupTimeout
	if t := in.Check.Spec.Checks.NodeStartupTimeoutSeconds; t != nil {
		timeout = seconds(t)
	}
	if timeout <= 0 {
		return Finding{Machine: m, Verdict: Starting}
	}
	since := m.CreationTimestamp.Time
	for _, c := range []*clusterv1.Condition{
		condition.Get(in.Cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition),
		condition.Get(in.Cluster, clusterv1.InfrastructureReadyV1Beta1Condition),
		condition.Get(m, clusterv1.InfrastructureReadyV1Beta1Condition),
	} {
		if c != nil && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	due := since.Add(timeout)
	const reason = clusterv1.NodeStartupTimeoutV1Beta1Reason
	if in.Now.After(due) && m.Status.NodeRef.IsDefined() {
		return unhealthy(m, reason, "The control plane has not been initialized for %s (nodeStartupTimeout)", timeout)
	}
	if in.Now.After(due) {
		return unhealthy(m, reason, "Node failed to report startup in %s", timeout)
	}
	return Finding{Machine: m, Verdict: Starting, Due: due}
}

// node checks how long the conditions of a Node have been bad.
func (in *Input) node(m *clusterv1.Machine, node *corev1.Node) Finding {
	found := Finding{Machine: m, Verdict: Healthy}
	for _, bad := range in.Check.Spec.Checks.UnhealthyNodeConditions {
		is := conditionOf(node, bad.Type)
		if is == nil || is.Status != bad.Status {
			continue
		}
		found.add(in.Now, clusterv1.UnhealthyNodeConditionV1Beta1Reason, observation{
			what: string(bad.Type) + " on Node " + node.Name, status: string(is.Status), reason: is.Reason, since: is.LastTransitionTime.Time,
			timeout: seconds(bad.TimeoutSeconds),
		})
	}
	if found.Verdict == Healthy {
		return in.held(found)
	}
	return found
}

// observation is a bad condition.
type observation struct {
	what, status, reason string
	since                time.Time
	timeout              time.Duration
}

func (o observation) String() string {
	text := "Condition " + o.what + " is reporting status " + o.status
	if o.reason != "" {
		text += " with reason " + o.reason
	}
	return text
}

// add adds a bad condition to a finding: to the others that have lasted long enough if it has, or else if it is due first.
func (f *Finding) add(now time.Time, reason string, bad observation) {
	due := bad.since.Add(bad.timeout)
	if !now.After(due) {
		if f.Verdict == Healthy || f.Verdict == Failing && due.Before(f.Due) {
			f.Verdict, f.Due, f.Problems = Failing, due, []string{bad.String()}
		}
		return
	}
	if f.Verdict != Unhealthy {
		*f = Finding{Machine: f.Machine, Verdict: Unhealthy, Reason: reason}
	}
	f.Problems = append(f.Problems, fmt.Sprintf("%s for more than %s", bad, bad.timeout))
}

func seconds(n *int32) time.Duration { return time.Duration(ptr.Deref(n, 0)) * time.Second }

// held holds back the first mark of a Machine, and the recovery of one that was marked moments ago. Without the latter, two checks of
// the same Machine that disagree would overwrite each other's mark without a pause.
func (in *Input) held(found Finding) Finding {
	marked := condition.Get(found.Machine, clusterv1.MachineHealthCheckSucceededV1Beta1Condition)
	healthy := condition.Get(found.Machine, clusterv1.MachineNodeHealthyV1Beta1Condition)
	switch {
	case marked == nil && healthy != nil:
		if due := healthy.LastTransitionTime.Add(firstMarkDelay); in.Now.Before(due) {
			found.Due = due
		}
	case marked != nil && marked.Status == corev1.ConditionFalse:
		if due := marked.LastTransitionTime.Add(recoveryDelay); in.Now.Before(due) {
			found.Verdict, found.Due = Recovering, due
		}
	}
	return found
}

// Relevant returns a Node with the name and the conditions that a check depends on.
func Relevant(check *clusterv1.MachineHealthCheck, node *corev1.Node) *corev1.Node {
	out := &corev1.Node{}
	out.Name = node.Name
	for _, bad := range check.Spec.Checks.UnhealthyNodeConditions {
		if c := conditionOf(node, bad.Type); c != nil && conditionOf(out, bad.Type) == nil {
			out.Status.Conditions = append(out.Status.Conditions, corev1.NodeCondition{
				Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime,
			})
		}
	}
	return out
}

func conditionOf(node *corev1.Node, t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == t {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}
