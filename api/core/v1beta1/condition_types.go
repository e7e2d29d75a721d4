package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionType names one aspect of an object's state, in CamelCase and with positive polarity: True is good.
type ConditionType string

// ConditionSeverity says how much a False condition matters. It is empty for every other status.
type ConditionSeverity string

const (
	// ConditionSeverityError marks a False condition that needs someone to step in.
	ConditionSeverityError ConditionSeverity = "Error"
	// ConditionSeverityWarning marks a False condition that controllers are expected to overcome by retrying.
	ConditionSeverityWarning ConditionSeverity = "Warning"
	// ConditionSeverityInfo marks a False condition that is a normal step on the way.
	ConditionSeverityInfo ConditionSeverity = "Info"
	// ConditionSeverityNone is the severity of conditions that are True or Unknown.
	ConditionSeverityNone ConditionSeverity = ""
)

// Condition is one observation of an object's state at a point in time.
type Condition struct {
	// type names the aspect this condition is about, in CamelCase; unique within the list.
	Type ConditionType `json:"type"`

	// status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`

	// severity is Error, Warning or Info when status is False, and empty otherwise.
	// +optional
	Severity ConditionSeverity `json:"severity,omitempty"`

	// lastTransitionTime is when status, reason, severity or message last changed, in whole seconds.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`

	// reason says in one CamelCase word why the condition has its status; for aggregated conditions it may end in
	// " @ Kind/name" of the object it came from. May be empty when the status is True.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message explains the status to a person. May be empty.
	// +optional
	Message string `json:"message,omitempty"`
}

// Conditions is the list of an object's conditions, kept sorted: Ready first, then by type.
type Conditions []Condition
