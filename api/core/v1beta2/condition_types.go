package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionType is the type of a condition of v1beta1, in CamelCase and with positive polarity: True is healthy.
type ConditionType string

// ConditionSeverity is the severity of a False condition of v1beta1. It is empty for other statuses.
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

// Condition is an observation of an object's state at a point in time, as v1beta1 has it. Conditions of v1beta2 are
// those of
// Kubernetes (metav1.Condition).
type Condition struct {
	// type is the type of the condition in CamelCase, unique within the list.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Type ConditionType `json:"type,omitempty"`

	// status is True, False or Unknown.
	// +required
	Status corev1.ConditionStatus `json:"status,omitempty"`

	// severity is Error, Warning or Info when status is False, and empty otherwise.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Severity ConditionSeverity `json:"severity,omitempty"`

	// lastTransitionTime is when status, reason, severity or message last changed, in whole seconds.
	// +required
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`

	// reason is the reason for the status as one CamelCase word. May be empty when the status is True.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`

	// message explains the status to users. May be empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	Message string `json:"message,omitempty"`
}

// Conditions is the list of an object's conditions as v1beta1 has them, kept sorted: Ready first, then by type.
type Conditions []Condition
