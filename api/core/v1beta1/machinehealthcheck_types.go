package v1beta1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DefaultNodeStartupTimeout is the default of nodeStartupTimeout.
const DefaultNodeStartupTimeout = 10 * time.Minute

// MachineHealthCheckSpec defines which machines to watch, when they are unhealthy, and the limits of remediation.
type MachineHealthCheckSpec struct {
	// clusterName is the name of the Cluster whose machines are watched, in the same namespace. Immutable.
	// +kubebuilder:validation:MinLength=1
	ClusterName string `json:"clusterName"`

	// selector selects machines of the cluster by label. It must not be empty.
	Selector metav1.LabelSelector `json:"selector"`

	// unhealthyConditions are Node conditions; a machine is unhealthy when any one of them has held for its timeout.
	// +optional
	UnhealthyConditions []UnhealthyCondition `json:"unhealthyConditions,omitempty"`

	// unhealthyMachineConditions are Machine conditions; a machine is unhealthy when any one of them has held for its
	// timeout.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	UnhealthyMachineConditions []UnhealthyMachineCondition `json:"unhealthyMachineConditions,omitempty"`

	// maxUnhealthy stops remediation while more than this number or percentage of the machines is unhealthy. When
	// unset, 100%.
	// +optional
	MaxUnhealthy *intstr.IntOrString `json:"maxUnhealthy,omitempty"`

	// unhealthyRange allows remediation only while the number of unhealthy machines is within "[min-max]", both ends
	// included. It takes precedence over maxUnhealthy.
	// +optional
	// +kubebuilder:validation:Pattern=^\[[0-9]+-[0-9]+\]$
	UnhealthyRange *string `json:"unhealthyRange,omitempty"`

	// nodeStartupTimeout is how long a machine may take to get a Node before it counts as unhealthy: at least 30s, or
	// exactly 0s to never count it. When unset, 10m.
	// +optional
	NodeStartupTimeout *metav1.Duration `json:"nodeStartupTimeout,omitempty"`

	// remediationTemplate references a template from which a remediation request is created for each unhealthy machine,
	// for an external controller. When unset, the owner of the machine replaces it.
	// +optional
	RemediationTemplate *corev1.ObjectReference `json:"remediationTemplate,omitempty"`
}

// UnhealthyCondition is a Node condition that makes a machine unhealthy after a timeout.
type UnhealthyCondition struct {
	// type is the type of the Node condition, such as Ready.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	Type corev1.NodeConditionType `json:"type"`

	// status is the unhealthy status of the Node condition: True, False or Unknown.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	Status corev1.ConditionStatus `json:"status"`

	// timeout is how long the status must last.
	Timeout metav1.Duration `json:"timeout"`
}

// UnhealthyMachineCondition is a Machine condition that makes the machine unhealthy after a timeout.
type UnhealthyMachineCondition struct {
	// type is the type of the Machine condition, such as NodeReady. Conditions that depend on the result of a health check
	// are not allowed: Ready, Available, HealthCheckSucceeded, OwnerRemediated and ExternallyRemediated.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	Type string `json:"type"`

	// status is the unhealthy status of the Machine condition.
	// +kubebuilder:validation:Enum=True;False;Unknown
	Status metav1.ConditionStatus `json:"status"`

	// timeout is how long the status must last.
	Timeout metav1.Duration `json:"timeout"`
}

// MachineHealthCheckStatus is the observed state of the watched machines.
type MachineHealthCheckStatus struct {
	// expectedMachines is the number of machines that are watched.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ExpectedMachines int32 `json:"expectedMachines"`

	// currentHealthy is how many of them are healthy.
	// +optional
	// +kubebuilder:validation:Minimum=0
	CurrentHealthy int32 `json:"currentHealthy"`

	// remediationsAllowed is how many more machines may become unhealthy before remediation stops.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RemediationsAllowed int32 `json:"remediationsAllowed"`

	// observedGeneration is the latest metadata.generation observed by the controller.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// targets are the names of the machines that are watched.
	// +optional
	Targets []string `json:"targets,omitempty"`

	// conditions are the current conditions, set by the controllers.
	// +optional
	Conditions Conditions `json:"conditions,omitempty"`

	// v1beta2 is the part of the status that v1beta2 added, at the same paths below .status.
	// +optional
	V1Beta2 *MachineHealthCheckV1Beta2Status `json:"v1beta2,omitempty"`
}

// MachineHealthCheckV1Beta2Status is the part of the status of a health check that v1beta2 added.
type MachineHealthCheckV1Beta2Status struct {
	// conditions are the current conditions, with the types and reasons of v1beta2.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=machinehealthchecks,shortName=mhc;mhcs,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.clusterName",description="Cluster whose Machines are watched"
// +kubebuilder:printcolumn:name="ExpectedMachines",type="integer",JSONPath=".status.expectedMachines",description="Machines that are watched"
// +kubebuilder:printcolumn:name="MaxUnhealthy",type="string",JSONPath=".spec.maxUnhealthy",description="Unhealthy Machines beyond which remediation stops"
// +kubebuilder:printcolumn:name="CurrentHealthy",type="integer",JSONPath=".status.currentHealthy",description="Machines that are healthy"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// MachineHealthCheck watches machines and triggers the remediation of unhealthy ones.
type MachineHealthCheck struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MachineHealthCheckSpec   `json:"spec,omitempty"`
	Status MachineHealthCheckStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the MachineHealthCheck.
func (m *MachineHealthCheck) GetConditions() Conditions { return m.Status.Conditions }

// SetConditions replaces the conditions of the MachineHealthCheck.
func (m *MachineHealthCheck) SetConditions(conditions Conditions) { m.Status.Conditions = conditions }

// GetV1Beta2Conditions returns the conditions that v1beta2 shows.
func (m *MachineHealthCheck) GetV1Beta2Conditions() []metav1.Condition {
	if m.Status.V1Beta2 == nil {
		return nil
	}
	return m.Status.V1Beta2.Conditions
}

// SetV1Beta2Conditions replaces the conditions that v1beta2 shows.
func (m *MachineHealthCheck) SetV1Beta2Conditions(conditions []metav1.Condition) {
	if m.Status.V1Beta2 == nil {
		m.Status.V1Beta2 = &MachineHealthCheckV1Beta2Status{}
	}
	m.Status.V1Beta2.Conditions = conditions
}

// +kubebuilder:object:root=true

// MachineHealthCheckList is a list of MachineHealthChecks.
type MachineHealthCheckList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineHealthCheck `json:"items"`
}
