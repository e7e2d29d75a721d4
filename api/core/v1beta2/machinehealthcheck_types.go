package v1beta2

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DefaultNodeStartupTimeout is the default of nodeStartupTimeoutSeconds.
const DefaultNodeStartupTimeout = 10 * time.Minute

// MachineHealthCheckSpec defines which machines to watch, when they are unhealthy, and the limits of remediation.
type MachineHealthCheckSpec struct {
	// clusterName is the name of the Cluster whose machines are watched, in the same namespace. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`

	// selector selects machines of the cluster by label. It must not be empty.
	// +required
	Selector metav1.LabelSelector `json:"selector,omitempty,omitzero"`

	// checks define when a machine is unhealthy: any of them is sufficient. When unset, a machine is unhealthy when it gets
	// no Node within the default timeout.
	// +optional
	Checks MachineHealthCheckChecks `json:"checks,omitempty,omitzero"`

	// remediation is how unhealthy machines are remediated, and when not.
	// +optional
	Remediation MachineHealthCheckRemediation `json:"remediation,omitempty,omitzero"`
}

// MachineHealthCheckChecks define when a machine is unhealthy: any of them is sufficient.
// +kubebuilder:validation:MinProperties=1
type MachineHealthCheckChecks struct {
	// nodeStartupTimeoutSeconds is how many seconds a machine may take to get a Node before it counts as unhealthy: at least
	// 30, or 0 to never count it. When unset, 600.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeStartupTimeoutSeconds *int32 `json:"nodeStartupTimeoutSeconds,omitempty"`

	// unhealthyNodeConditions are Node conditions; a machine is unhealthy when any one of them has held for its timeout.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	UnhealthyNodeConditions []UnhealthyNodeCondition `json:"unhealthyNodeConditions,omitempty"`

	// unhealthyMachineConditions are Machine conditions; a machine is unhealthy when any one of them has held for its
	// timeout.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	UnhealthyMachineConditions []UnhealthyMachineCondition `json:"unhealthyMachineConditions,omitempty"`
}

// UnhealthyNodeCondition is a Node condition that makes a machine unhealthy after a timeout.
type UnhealthyNodeCondition struct {
	// type is the type of the Node condition, such as Ready.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	Type corev1.NodeConditionType `json:"type,omitempty"`

	// status is the unhealthy status of the Node condition: True, False or Unknown.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	Status corev1.ConditionStatus `json:"status,omitempty"`

	// timeoutSeconds is how many seconds the status must last.
	// +required
	// +kubebuilder:validation:Minimum=0
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
}

// UnhealthyMachineCondition is a Machine condition that makes the machine unhealthy after a timeout.
type UnhealthyMachineCondition struct {
	// type is the type of the Machine condition, such as NodeReady. Conditions that depend on the result of a health check
	// are not allowed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['Ready','Available','HealthCheckSucceeded','OwnerRemediated','ExternallyRemediated'])",message="type must not be one of: Ready, Available, HealthCheckSucceeded, OwnerRemediated, ExternallyRemediated"
	Type string `json:"type,omitempty"`

	// status is the unhealthy status of the Machine condition.
	// +required
	// +kubebuilder:validation:Enum=True;False;Unknown
	Status metav1.ConditionStatus `json:"status,omitempty"`

	// timeoutSeconds is how many seconds the status must last.
	// +required
	// +kubebuilder:validation:Minimum=0
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
}

// MachineHealthCheckRemediation is how unhealthy machines are remediated, and when not.
// +kubebuilder:validation:MinProperties=1
type MachineHealthCheckRemediation struct {
	// triggerIf limits remediation to times when only some machines are unhealthy. When unset, there is no limit.
	// +optional
	TriggerIf MachineHealthCheckRemediationTriggerIf `json:"triggerIf,omitempty,omitzero"`

	// templateRef references a template from which a remediation request is created for each unhealthy machine, for an
	// external controller. When unset, the owner of the machine replaces it.
	// +optional
	TemplateRef MachineHealthCheckRemediationTemplateReference `json:"templateRef,omitempty,omitzero"`
}

// MachineHealthCheckRemediationTriggerIf limits remediation to times when only some machines are unhealthy.
// +kubebuilder:validation:MinProperties=1
type MachineHealthCheckRemediationTriggerIf struct {
	// unhealthyLessThanOrEqualTo stops remediation while more than this number or percentage of the machines is unhealthy.
	// When unset, 100%.
	// +optional
	UnhealthyLessThanOrEqualTo *intstr.IntOrString `json:"unhealthyLessThanOrEqualTo,omitempty"`

	// unhealthyInRange allows remediation only while the number of unhealthy machines is within "[min-max]", both ends
	// included. It takes precedence over unhealthyLessThanOrEqualTo.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^\[[0-9]+-[0-9]+\]$`
	UnhealthyInRange string `json:"unhealthyInRange,omitempty"`
}

// MachineHealthCheckRemediationTemplateReference references a template of remediation requests, in the namespace of the
// machines.
type MachineHealthCheckRemediationTemplateReference struct {
	// kind is the kind of the template: letters, digits and hyphens.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$`
	Kind string `json:"kind,omitempty"`

	// name is the name of the template.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`

	// apiVersion is the API group and version of the template, such as infrastructure.cluster.x-k8s.io/v1beta1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[a-z]([-a-z0-9]*[a-z0-9])?$`
	APIVersion string `json:"apiVersion,omitempty"`
}

// IsDefined reports whether any field of the reference is set.
func (r *MachineHealthCheckRemediationTemplateReference) IsDefined() bool {
	return r != nil && *r != MachineHealthCheckRemediationTemplateReference{}
}

// ToObjectReference returns the reference with a namespace.
func (r *MachineHealthCheckRemediationTemplateReference) ToObjectReference(namespace string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: namespace, Name: r.Name}
}

// MachineHealthCheckStatus is the observed state of the watched machines.
// +kubebuilder:validation:MinProperties=1
type MachineHealthCheckStatus struct {
	// conditions are the current conditions: RemediationAllowed and Paused.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// expectedMachines is the number of machines that are watched.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ExpectedMachines *int32 `json:"expectedMachines,omitempty"`

	// currentHealthy is how many of them are healthy.
	// +optional
	// +kubebuilder:validation:Minimum=0
	CurrentHealthy *int32 `json:"currentHealthy,omitempty"`

	// remediationsAllowed is how many more machines may become unhealthy before remediation stops.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RemediationsAllowed *int32 `json:"remediationsAllowed,omitempty"`

	// observedGeneration is the latest metadata.generation observed by the controller.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// targets are the names of the machines that are watched.
	// +optional
	// +kubebuilder:validation:MaxItems=10000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	Targets []string `json:"targets,omitempty"`

	// deprecated groups what an older API version shows, and controllers no longer use.
	// +optional
	Deprecated *MachineHealthCheckDeprecatedStatus `json:"deprecated,omitempty"`
}

// MachineHealthCheckDeprecatedStatus groups what an older API version shows, and controllers no longer use.
type MachineHealthCheckDeprecatedStatus struct {
	// v1beta1 is the status that only v1beta1 has. It is removed together with that version.
	// +optional
	V1Beta1 *MachineHealthCheckV1Beta1DeprecatedStatus `json:"v1beta1,omitempty"`
}

// MachineHealthCheckV1Beta1DeprecatedStatus is the status that only v1beta1 has.
type MachineHealthCheckV1Beta1DeprecatedStatus struct {
	// conditions are the conditions of v1beta1, with severities.
	// +optional
	Conditions Conditions `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=machinehealthchecks,shortName=mhc;mhcs,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.clusterName",description="Cluster the MachineHealthCheck belongs to"
// +kubebuilder:printcolumn:name="Replicas",type="integer",JSONPath=".status.expectedMachines",description="Number of machines that are watched"
// +kubebuilder:printcolumn:name="Healthy",type="integer",JSONPath=".status.currentHealthy",description="Number of machines that are healthy"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether the MachineHealthCheck is paused",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// MachineHealthCheck watches machines and triggers the remediation of unhealthy ones.
type MachineHealthCheck struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of objects.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec MachineHealthCheckSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status MachineHealthCheckStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the MachineHealthCheck.
func (m *MachineHealthCheck) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions replaces the conditions of the MachineHealthCheck.
func (m *MachineHealthCheck) SetConditions(conditions []metav1.Condition) {
	m.Status.Conditions = conditions
}

// GetV1Beta1Conditions returns the conditions that v1beta1 shows.
func (m *MachineHealthCheck) GetV1Beta1Conditions() Conditions {
	if m.Status.Deprecated == nil || m.Status.Deprecated.V1Beta1 == nil {
		return nil
	}
	return m.Status.Deprecated.V1Beta1.Conditions
}

// SetV1Beta1Conditions replaces the conditions that v1beta1 shows.
func (m *MachineHealthCheck) SetV1Beta1Conditions(conditions Conditions) {
	if len(conditions) == 0 && len(m.GetV1Beta1Conditions()) == 0 {
		return
	}
	if m.Status.Deprecated == nil {
		m.Status.Deprecated = &MachineHealthCheckDeprecatedStatus{}
	}
	if m.Status.Deprecated.V1Beta1 == nil {
		m.Status.Deprecated.V1Beta1 = &MachineHealthCheckV1Beta1DeprecatedStatus{}
	}
	m.Status.Deprecated.V1Beta1.Conditions = conditions
}

// +kubebuilder:object:root=true

// MachineHealthCheckList is a list of MachineHealthChecks.
type MachineHealthCheckList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineHealthCheck `json:"items"`
}
