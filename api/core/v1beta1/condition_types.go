package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionType is the type of a condition, in CamelCase and with positive polarity: True is healthy.
type ConditionType string

// ConditionSeverity is the severity of a False condition. It is empty for other statuses.
type ConditionSeverity string

const (
	// ConditionSeverityError marks a False condition that requires intervention.
	ConditionSeverityError ConditionSeverity = "Error"
	// ConditionSeverityWarning marks a False condition that retries are expected to resolve.
	ConditionSeverityWarning ConditionSeverity = "Warning"
	// ConditionSeverityInfo marks a False condition during normal operation.
	ConditionSeverityInfo ConditionSeverity = "Info"
	// ConditionSeverityNone is the severity of conditions that are True or Unknown.
	ConditionSeverityNone ConditionSeverity = ""
)

// Condition is an observation of an object's state at a point in time.
type Condition struct {
	// type is the type of the condition in CamelCase, unique within the list.
	Type ConditionType `json:"type"`

	// status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`

	// severity is Error, Warning or Info when status is False, and empty otherwise.
	// +optional
	Severity ConditionSeverity `json:"severity,omitempty"`

	// lastTransitionTime is when status, reason, severity or message last changed, in whole seconds.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`

	// reason is the reason for the status as one CamelCase word; for aggregated conditions it may end in " @ Kind/name"
	// of the object it came from. May be empty when the status is True.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message explains the status to users. May be empty.
	// +optional
	Message string `json:"message,omitempty"`
}

// Conditions is the list of an object's conditions, kept sorted: Ready first, then by type.
type Conditions []Condition
