package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MachineDeploymentStrategyType is a strategy to replace machines.
type MachineDeploymentStrategyType string

const (
	// RollingUpdateMachineDeploymentStrategyType replaces machines step by step, within maxSurge and maxUnavailable.
	// It is the default.
	RollingUpdateMachineDeploymentStrategyType MachineDeploymentStrategyType = "RollingUpdate"
	// OnDeleteMachineDeploymentStrategyType only replaces machines that users have deleted.
	OnDeleteMachineDeploymentStrategyType MachineDeploymentStrategyType = "OnDelete"
)

// MachineDeploymentSpec is the desired state of a deployment of machines.
type MachineDeploymentSpec struct {
	// clusterName is the name of the Cluster this deployment belongs to, in the same namespace. Immutable.
	// +kubebuilder:validation:MinLength=1
	ClusterName string `json:"clusterName"`

	// replicas is the number of machines. When unset, 1, or a number within the autoscaler's bounds if the annotations
	// AutoscalerMinSizeAnnotation and AutoscalerMaxSizeAnnotation are both present.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// rolloutAfter replaces, after this time, all machines created before it, even without a change of the template.
	// +optional
	RolloutAfter *metav1.Time `json:"rolloutAfter,omitempty"`

	// selector finds the MachineSets and machines of the deployment; it must match the labels of the template. The label
	// ClusterNameLabel is always added to both, and MachineDeploymentNameLabel when the selector is empty.
	Selector metav1.LabelSelector `json:"selector"`

	// template is the template of new machines. Changes of its spec that cannot be made in place replace machines.
	Template MachineTemplateSpec `json:"template"`

	// machineNamingStrategy defines the names of new machines.
	// +optional
	MachineNamingStrategy *MachineNamingStrategy `json:"machineNamingStrategy,omitempty"`

	// strategy is how machines are replaced. When unset, RollingUpdate.
	// +optional
	Strategy *MachineDeploymentStrategy `json:"strategy,omitempty"`

	// minReadySeconds is how many seconds a Node must be ready to count as available. When unset, 0.
	// +optional
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// revisionHistoryLimit is the number of old, empty MachineSets to keep for rollbacks. When unset, 1.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// paused stops changes of machines by this deployment.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// progressDeadlineSeconds exists for compatibility and has no effect. When unset, 600.
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
}

// MachineDeploymentStrategy is how machines are replaced.
type MachineDeploymentStrategy struct {
	// type is RollingUpdate or OnDelete. When unset, RollingUpdate.
	// +optional
	// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
	Type MachineDeploymentStrategyType `json:"type,omitempty"`

	// rollingUpdate sets the bounds of a rolling update. Ignored for other types.
	// +optional
	RollingUpdate *MachineRollingUpdateDeployment `json:"rollingUpdate,omitempty"`

	// remediation limits the remediation of unhealthy machines, with any type.
	// +optional
	Remediation *RemediationStrategy `json:"remediation,omitempty"`
}

// RemediationStrategy limits the remediation of a MachineDeployment's unhealthy machines.
type RemediationStrategy struct {
	// maxInFlight is how many machines, or which percentage of replicas rounded up, may be in remediation at the same time: marked
	// as unhealthy, and being deleted. The newest are remediated first. Only machines of the MachineDeployment's current template
	// are remediated: a rollout replaces the others. When unset, all unhealthy machines are remediated at once.
	// +optional
	MaxInFlight *intstr.IntOrString `json:"maxInFlight,omitempty"`
}

// MachineRollingUpdateDeployment sets the bounds of a rolling update.
type MachineRollingUpdateDeployment struct {
	// maxUnavailable is how many machines, or which percentage of replicas rounded down, may be missing during the
	// update. When unset, 0. Must not be 0 if maxSurge is.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxSurge is how many machines, or which percentage of replicas rounded up, may exist beyond replicas during the
	// update. When unset, 1. Must not be 0 if maxUnavailable is.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// deletePolicy is which machines are deleted first when a MachineSet is scaled down: Random, Newest or Oldest. When
	// unset, Random.
	// +optional
	// +kubebuilder:validation:Enum=Random;Newest;Oldest
	DeletePolicy *string `json:"deletePolicy,omitempty"`
}

// MachineDeploymentStatus is the observed state of a deployment of machines.
type MachineDeploymentStatus struct {
	// observedGeneration is the latest metadata.generation observed by the controller.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// selector is spec.selector as text, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// replicas is the number of machines of all MachineSets, without those being deleted.
	// +optional
	Replicas int32 `json:"replicas"`

	// updatedReplicas is how many of them are made from the current template.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// readyReplicas is how many of them have a ready Node.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// availableReplicas is how many of them have a Node that has been ready for minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`

	// unavailableReplicas is how many more machines must become available.
	// +optional
	UnavailableReplicas int32 `json:"unavailableReplicas"`

	// phase is the current phase: ScalingUp, ScalingDown, Running, Failed or Unknown; empty if none applies. For users;
	// controllers read conditions.
	// +optional
	Phase string `json:"phase,omitempty"`

	// conditions are the current conditions, set by the controllers.
	// +optional
	Conditions Conditions `json:"conditions,omitempty"`

	// versions is how many machines have which Kubernetes version, in ascending order.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=version
	Versions []StatusVersion `json:"versions,omitempty"`

	// v1beta2 is the part of the status that v1beta2 added, at the same paths below .status.
	// +optional
	V1Beta2 *MachineDeploymentV1Beta2Status `json:"v1beta2,omitempty"`
}

// MachineDeploymentV1Beta2Status is the part of the status of a deployment of machines that v1beta2 added.
type MachineDeploymentV1Beta2Status struct {
	// conditions are the current conditions, with the types and reasons of v1beta2.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// readyReplicas is how many machines have the condition Ready.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// availableReplicas is how many machines have the condition Available.
	// +optional
	AvailableReplicas *int32 `json:"availableReplicas,omitempty"`

	// upToDateReplicas is how many machines have the condition UpToDate.
	// +optional
	UpToDateReplicas *int32 `json:"upToDateReplicas,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=machinedeployments,shortName=md,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.clusterName",description="Cluster the MachineDeployment belongs to"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=".spec.replicas",description="Machines asked for",priority=10
// +kubebuilder:printcolumn:name="Replicas",type="integer",JSONPath=".status.replicas",description="Machines there are, without those being deleted"
// +kubebuilder:printcolumn:name="Ready",type="integer",JSONPath=".status.readyReplicas",description="Machines with a ready Node"
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=".status.updatedReplicas",description="Machines made from the current template"
// +kubebuilder:printcolumn:name="Unavailable",type=integer,JSONPath=".status.unavailableReplicas",description="Machines that are not available yet"
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase",description="What the MachineDeployment is doing"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.template.spec.version",description="Kubernetes version of new machines"

// MachineDeployment maintains a number of machines, and rolls out changes of their template with a new MachineSet.
type MachineDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MachineDeploymentSpec   `json:"spec,omitempty"`
	Status MachineDeploymentStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the MachineDeployment.
func (m *MachineDeployment) GetConditions() Conditions { return m.Status.Conditions }

// SetConditions replaces the conditions of the MachineDeployment.
func (m *MachineDeployment) SetConditions(conditions Conditions) { m.Status.Conditions = conditions }

// GetV1Beta2Conditions returns the conditions that v1beta2 shows.
func (m *MachineDeployment) GetV1Beta2Conditions() []metav1.Condition {
	if m.Status.V1Beta2 == nil {
		return nil
	}
	return m.Status.V1Beta2.Conditions
}

// SetV1Beta2Conditions replaces the conditions that v1beta2 shows.
func (m *MachineDeployment) SetV1Beta2Conditions(conditions []metav1.Condition) {
	if m.Status.V1Beta2 == nil {
		m.Status.V1Beta2 = &MachineDeploymentV1Beta2Status{}
	}
	m.Status.V1Beta2.Conditions = conditions
}

// +kubebuilder:object:root=true

// MachineDeploymentList is a list of MachineDeployments.
type MachineDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineDeployment `json:"items"`
}
