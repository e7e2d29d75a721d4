package tree

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Document is a tree for programs: the output of `clusterctl describe cluster -o json`. Fields may be added to it; none is renamed
// or removed.
type Document struct {
	// Kind and Name identify the object. Kind is empty for a node that only groups others, such as Workers.
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Role is what the object is for its parent, such as ControlPlane.
	Role string `json:"role,omitempty"`
	// Group lists the names of the Machines that the node stands for, if they are grouped.
	Group    []string `json:"group,omitempty"`
	Deleting bool     `json:"deleting,omitempty"`
	// Ready is the condition Ready, or for a MachineHealthCheck whether it allows remediation.
	Ready *DocumentCondition `json:"ready,omitempty"`
	// Conditions are the other conditions, if they are shown.
	Conditions []DocumentCondition `json:"conditions,omitempty"`
	// Replicas has the ready and the desired number of Machines; Version the Kubernetes version, and Node the name of a Machine's
	// Node.
	Replicas *DocumentReplicas `json:"replicas,omitempty"`
	Version  string            `json:"version,omitempty"`
	Node     string            `json:"node,omitempty"`
	Created  *metav1.Time      `json:"created,omitempty"`
	Children []Document        `json:"children,omitempty"`
}

// DocumentCondition is a condition in a Document.
type DocumentCondition struct {
	Type     string       `json:"type,omitempty"`
	Status   string       `json:"status,omitempty"`
	Severity string       `json:"severity,omitempty"`
	Reason   string       `json:"reason,omitempty"`
	Message  string       `json:"message,omitempty"`
	Since    *metav1.Time `json:"since,omitempty"`
}

// DocumentReplicas counts Machines.
type DocumentReplicas struct {
	Ready   int64 `json:"ready"`
	Desired int64 `json:"desired"`
}

// NewDocument returns the Document of a tree.
func NewDocument(n *Node) Document {
	d := Document{
		APIVersion: n.APIVersion, Kind: n.Kind, Namespace: n.Namespace, Name: n.Name, Role: n.MetaName, Group: n.Group,
		Deleting: n.Deleting, Version: n.Version, Node: n.NodeName, Created: timeOf(n.Created), Replicas: n.Replicas,
	}
	if len(n.Group) > 0 {
		d.Namespace, d.APIVersion = "", ""
	}
	if n.Ready != nil {
		ready := documentCondition(*n.Ready)
		d.Ready = &ready
	}
	for _, c := range n.Conditions {
		d.Conditions = append(d.Conditions, documentCondition(c))
	}
	for _, child := range n.Children {
		d.Children = append(d.Children, NewDocument(child))
	}
	return d
}

func documentCondition(c Condition) DocumentCondition {
	return DocumentCondition{
		Type: c.Type, Status: c.Status, Severity: c.Severity, Reason: c.Reason, Message: c.Message, Since: timeOf(c.Since),
	}
}

func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}
