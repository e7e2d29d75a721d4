package machine

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// defaultConnectionGrace is Options.ConnectionGrace if it is not set.
const defaultConnectionGrace = 5 * time.Minute

// nodeFinding is what a step found out about the Node.
type nodeFinding struct {
	// looked is set if a step could look for the Node; node is nil if it does not exist.
	looked bool
	node   *corev1.Node
	// err is why it could not look.
	err error
}

// nodeReports returns NodeReady and NodeHealthy; none if nothing was learned.
func (s *scope) nodeReports(now time.Time) []metav1.Condition {
	if node := s.found.node.node; node != nil {
		return []metav1.Condition{nodeReady(node), nodeHealthy(node)}
	}
	status, reason, message := s.nodeAbsent(now)
	if status == "" {
		return nil
	}
	of := func(t string) metav1.Condition {
		c := report.Unknown(t, reason, "%s", message)
		c.Status = status
		return c
	}
	return []metav1.Condition{of(clusterv1.MachineNodeReadyCondition), of(clusterv1.MachineNodeHealthyCondition)}
}

// nodeAbsent returns what is known of a Node that was not found. An empty status leaves the conditions as they are.
func (s *scope) nodeAbsent(now time.Time) (status metav1.ConditionStatus, reason, message string) {
	const unknown = metav1.ConditionUnknown
	m, found := s.machine, s.found.node
	since, lost := remote.DisconnectedSince(found.err)
	first := report.Get(m, clusterv1.MachineNodeReadyCondition) == nil
	switch {
	case found.looked && m.Status.NodeRef.IsDefined() && m.DeletionTimestamp != nil:
		return metav1.ConditionFalse, clusterv1.MachineNodeDeletedReason, fmt.Sprintf("Node %s has been deleted", m.Status.NodeRef.Name)
	case found.looked && m.Status.NodeRef.IsDefined():
		return metav1.ConditionFalse, clusterv1.MachineNodeDeletedReason,
			fmt.Sprintf("Node %s has been deleted while the Machine still exists", m.Status.NodeRef.Name)
	case m.DeletionTimestamp != nil && !first:
		return "", "", "" // It is known what there was.
	case s.cluster == nil || !ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false):
		return unknown, clusterv1.InspectionFailedReason, "Waiting for Cluster status.infrastructureReady to be true"
	case !condition.IsTrue(s.cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition) && !m.Status.NodeRef.IsDefined() && !found.looked:
		return unknown, clusterv1.InspectionFailedReason, "Waiting for Cluster control plane to be initialized"
	case m.Spec.ProviderID == "":
		return unknown, clusterv1.InspectionFailedReason,
			fmt.Sprintf("Waiting for %s to report spec.providerID", m.Spec.InfrastructureRef.Kind)
	case found.looked:
		return unknown, clusterv1.MachineNodeDoesNotExistReason,
			fmt.Sprintf("Waiting for a Node with spec.providerID %s to exist", m.Spec.ProviderID)
	case remote.IsNotConnected(found.err) && !first &&
		report.Get(m, clusterv1.MachineNodeReadyCondition).Reason == clusterv1.ConnectionDownReason:
		return "", "", "" // A manager that has started meanwhile does not know when the cluster was reachable.
	case lost && now.Sub(since) >= cmp.Or(s.connectionGrace, defaultConnectionGrace):
		return unknown, clusterv1.ConnectionDownReason, "Last successful probe at " + since.UTC().Format(time.RFC3339)
	case remote.IsNotConnected(found.err) && first:
		return unknown, clusterv1.ConnectionDownReason, "Remote connection not established yet"
	case remote.IsNotConnected(found.err) || !first && found.err == nil:
		return "", "", ""
	}
	return unknown, clusterv1.InternalErrorReason, "Please check controller logs for errors"
}

// nodeReady mirrors the condition Ready of a Node.
func nodeReady(node *corev1.Node) metav1.Condition {
	t := clusterv1.MachineNodeReadyCondition
	c := nodeCondition(node, corev1.NodeReady)
	switch {
	case c == nil:
		return report.Unknown(t, clusterv1.MachineNodeReadyUnknownReason, "* Node.Ready: Condition not yet reported")
	case c.Status == corev1.ConditionTrue:
		return report.True(t, clusterv1.MachineNodeReadyReason, "")
	case c.Status == corev1.ConditionFalse:
		return report.False(t, clusterv1.MachineNodeNotReadyReason, "* Node.Ready: %s", said(c))
	}
	return report.Unknown(t, clusterv1.MachineNodeReadyUnknownReason, "* Node.Ready: %s", said(c))
}

// nodeHealthy summarizes the conditions of a Node.
func nodeHealthy(node *corev1.Node) metav1.Condition {
	t := clusterv1.MachineNodeHealthyCondition
	var lines []string
	same, bad, unknown := map[string]bool{}, 0, 0
	for _, w := range wanted {
		c := nodeCondition(node, w.kind)
		switch {
		case c != nil && c.Status == w.status:
			continue
		case c == nil || c.Status == corev1.ConditionUnknown:
			unknown++
		default:
			bad++
		}
		same[said(c)] = true
		lines = append(lines, fmt.Sprintf("* Node.%s: %s", w.kind, said(c)))
	}
	if len(lines) == len(wanted) && len(same) == 1 {
		_, text, _ := strings.Cut(lines[0], ": ")
		lines = []string{"* Node.AllConditions: " + text}
	}
	message := strings.Join(lines, "\n")
	switch {
	case bad > 0:
		return report.False(t, clusterv1.MachineNodeNotHealthyReason, "%s", message)
	case unknown > 0:
		return report.Unknown(t, clusterv1.MachineNodeHealthyUnknownReason, "%s", message)
	}
	return report.True(t, clusterv1.MachineNodeHealthyReason, "")
}

// statusesOf returns the statuses of the conditions that a healthy Node has.
func statusesOf(node *corev1.Node) (statuses [4]corev1.ConditionStatus) {
	for i, w := range wanted {
		if c := nodeCondition(node, w.kind); c != nil {
			statuses[i] = c.Status
		}
	}
	return statuses
}

func nodeCondition(node *corev1.Node, t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == t {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// said returns the message of a condition, bounded: kubelets write it.
func said(c *corev1.NodeCondition) string {
	switch {
	case c == nil:
		return "Condition not yet reported"
	case c.Message != "":
		return condition.Brief(c.Message)
	}
	return "Condition is " + condition.Brief(string(c.Status))
}
