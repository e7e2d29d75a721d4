package v1beta2

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// MachineDeploymentFinalizer blocks the deletion of a MachineDeployment until its MachineSets are gone.
	MachineDeploymentFinalizer = "cluster.x-k8s.io/machinedeployment"

	// MachineDeploymentTopologyFinalizer blocks the deletion of a MachineDeployment of a topology until the templates that
	// only it uses are deleted.
	MachineDeploymentTopologyFinalizer = "machinedeployment.topology.cluster.x-k8s.io"
)

// MachineDeploymentRolloutStrategyType is a strategy to replace machines.
// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
type MachineDeploymentRolloutStrategyType string

const (
	// RollingUpdateMachineDeploymentStrategyType replaces machines step by step, within maxSurge and maxUnavailable.
	// It is the default.
	RollingUpdateMachineDeploymentStrategyType MachineDeploymentRolloutStrategyType = "RollingUpdate"
	// OnDeleteMachineDeploymentStrategyType only replaces machines that users have deleted.
	OnDeleteMachineDeploymentStrategyType MachineDeploymentRolloutStrategyType = "OnDelete"
)

// MachineDeploymentSpec is the desired state of a deployment of machines.
type MachineDeploymentSpec struct {
	// clusterName is the name of the Cluster this deployment belongs to, in the same namespace. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`

	// replicas is the number of machines. When unset, 1, or a number within the autoscaler's bounds if the annotations
	// AutoscalerMinSizeAnnotation and AutoscalerMaxSizeAnnotation are both present.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// rollout is when and how machines are replaced.
	// +optional
	Rollout MachineDeploymentRolloutSpec `json:"rollout,omitempty,omitzero"`

	// selector finds the MachineSets and machines of the deployment; it must match the labels of the template. The label
	// ClusterNameLabel is always added to both, and MachineDeploymentNameLabel when the selector is empty.
	// +required
	Selector metav1.LabelSelector `json:"selector,omitempty,omitzero"`

	// template is the template of new machines. Changes of its spec that cannot be made in place replace machines.
	// +required
	Template MachineTemplateSpec `json:"template,omitempty,omitzero"`

	// machineNaming defines the names of new machines.
	// +optional
	MachineNaming MachineNamingSpec `json:"machineNaming,omitempty,omitzero"`

	// remediation limits the remediation of unhealthy machines.
	// +optional
	Remediation MachineDeploymentRemediationSpec `json:"remediation,omitempty,omitzero"`

	// deletion is which machines are deleted when a MachineSet is scaled down.
	// +optional
	Deletion MachineDeploymentDeletionSpec `json:"deletion,omitempty,omitzero"`

	// paused stops changes of machines by this deployment.
	// +optional
	Paused *bool `json:"paused,omitempty"`
}

// MachineDeploymentRolloutSpec is when and how machines are replaced.
// +kubebuilder:validation:MinProperties=1
type MachineDeploymentRolloutSpec struct {
	// after replaces, after this time, all machines created before it, even without a change of the template.
	// +optional
	After metav1.Time `json:"after,omitempty,omitzero"`

	// strategy is how machines are replaced. When unset, RollingUpdate.
	// +optional
	Strategy MachineDeploymentRolloutStrategy `json:"strategy,omitempty,omitzero"`
}

// MachineDeploymentRolloutStrategy is how machines are replaced.
// +kubebuilder:validation:MinProperties=1
type MachineDeploymentRolloutStrategy struct {
	// type is RollingUpdate or OnDelete.
	// +required
	Type MachineDeploymentRolloutStrategyType `json:"type,omitempty"`

	// rollingUpdate sets the bounds of a rolling update. Ignored for other types.
	// +optional
	RollingUpdate MachineDeploymentRolloutStrategyRollingUpdate `json:"rollingUpdate,omitempty,omitzero"`
}

// MachineDeploymentRolloutStrategyRollingUpdate sets the bounds of a rolling update.
// +kubebuilder:validation:MinProperties=1
type MachineDeploymentRolloutStrategyRollingUpdate struct {
	// maxUnavailable is how many machines, or which percentage of replicas rounded down, may be missing during the update.
	// When unset, 0. Must not be 0 if maxSurge is.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxSurge is how many machines, or which percentage of replicas rounded up, may exist beyond replicas during the
	// update. When unset, 1. Must not be 0 if maxUnavailable is.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
}

// MachineDeploymentRemediationSpec limits the remediation of unhealthy machines.
// +kubebuilder:validation:MinProperties=1
type MachineDeploymentRemediationSpec struct {
	// maxInFlight is how many unhealthy machines, or which percentage of replicas rounded up, may be replaced at the same
	// time. When unset, there is no limit.
	// +optional
	MaxInFlight *intstr.IntOrString `json:"maxInFlight,omitempty"`
}

// MachineDeploymentDeletionSpec is which machines are deleted when a MachineSet is scaled down.
// +kubebuilder:validation:MinProperties=1
type MachineDeploymentDeletionSpec struct {
	// order is which machines are deleted first: Random, Newest or Oldest. When unset, Random.
	// +optional
	Order MachineSetDeletionOrder `json:"order,omitempty"`
}

// MachineDeploymentStatus is the observed state of a deployment of machines.
// +kubebuilder:validation:MinProperties=1
type MachineDeploymentStatus struct {
	// conditions are the current conditions: Available, MachinesReady, MachinesUpToDate, RollingOut, ScalingUp, ScalingDown,
	// Remediating, Deleting and Paused.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the latest metadata.generation observed by the controller.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// selector is spec.selector as text, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Selector string `json:"selector,omitempty"`

	// replicas is the number of machines of all MachineSets.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// readyReplicas is how many of them have the condition Ready.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// availableReplicas is how many of them have the condition Available.
	// +optional
	AvailableReplicas *int32 `json:"availableReplicas,omitempty"`

	// upToDateReplicas is how many of them have the condition UpToDate.
	// +optional
	UpToDateReplicas *int32 `json:"upToDateReplicas,omitempty"`

	// versions is how many machines have which Kubernetes version, in ascending order.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=version
	Versions []StatusVersion `json:"versions,omitempty"`

	// phase is the current phase. For users; controllers read conditions.
	// +optional
	// +kubebuilder:validation:Enum=ScalingUp;ScalingDown;Running;Failed;Unknown
	Phase string `json:"phase,omitempty"`

	// deprecated groups what an older API version shows, and controllers no longer use.
	// +optional
	Deprecated *MachineDeploymentDeprecatedStatus `json:"deprecated,omitempty"`
}

// MachineDeploymentDeprecatedStatus groups what an older API version shows, and controllers no longer use.
type MachineDeploymentDeprecatedStatus struct {
	// v1beta1 is the status that only v1beta1 has. It is removed together with that version.
	// +optional
	V1Beta1 *MachineDeploymentV1Beta1DeprecatedStatus `json:"v1beta1,omitempty"`
}

// MachineDeploymentV1Beta1DeprecatedStatus is the status that only v1beta1 has.
type MachineDeploymentV1Beta1DeprecatedStatus struct {
	// conditions are the conditions of v1beta1, with severities.
	// +optional
	Conditions Conditions `json:"conditions,omitempty"`

	// updatedReplicas is how many machines are made from the current template.
	// +optional
	UpdatedReplicas *int32 `json:"updatedReplicas,omitempty"`

	// readyReplicas is how many machines have a ready Node.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// availableReplicas is how many machines have a Node that has been ready for minReadySeconds.
	// +optional
	AvailableReplicas *int32 `json:"availableReplicas,omitempty"`

	// unavailableReplicas is how many more machines must become available.
	// +optional
	UnavailableReplicas *int32 `json:"unavailableReplicas,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=machinedeployments,shortName=md,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.clusterName",description="Cluster the MachineDeployment belongs to"
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="Whether the condition Available is True"
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".spec.replicas",description="Desired number of machines"
// +kubebuilder:printcolumn:name="Current",type="integer",JSONPath=".status.replicas",description="Number of machines"
// +kubebuilder:printcolumn:name="Ready",type="integer",JSONPath=".status.readyReplicas",description="Number of machines whose condition Ready is True"
// +kubebuilder:printcolumn:name="Available",type="integer",JSONPath=".status.availableReplicas",description="Number of machines whose condition Available is True"
// +kubebuilder:printcolumn:name="Up-to-date",type="integer",JSONPath=".status.upToDateReplicas",description="Number of machines whose condition UpToDate is True"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether the MachineDeployment is paused",priority=10
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase",description="Phase of the MachineDeployment"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.template.spec.version",description="Kubernetes version of new machines"

// MachineDeployment maintains a number of machines, and rolls out changes of their template with a new MachineSet.
type MachineDeployment struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of objects.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec MachineDeploymentSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status MachineDeploymentStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the MachineDeployment.
func (m *MachineDeployment) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions replaces the conditions of the MachineDeployment.
func (m *MachineDeployment) SetConditions(conditions []metav1.Condition) {
	m.Status.Conditions = conditions
}

// GetV1Beta1Status returns the status that only v1beta1 has.
func (m *MachineDeployment) GetV1Beta1Status() MachineDeploymentV1Beta1DeprecatedStatus {
	if m.Status.Deprecated == nil || m.Status.Deprecated.V1Beta1 == nil {
		return MachineDeploymentV1Beta1DeprecatedStatus{}
	}
	return *m.Status.Deprecated.V1Beta1
}

// SetV1Beta1Status replaces the status that only v1beta1 has, including its conditions.
func (m *MachineDeployment) SetV1Beta1Status(status MachineDeploymentV1Beta1DeprecatedStatus) {
	if m.Status.Deprecated == nil && equality.Semantic.DeepEqual(status, MachineDeploymentV1Beta1DeprecatedStatus{}) {
		return
	}
	m.Status.Deprecated = &MachineDeploymentDeprecatedStatus{V1Beta1: &status}
}

// GetV1Beta1Conditions returns the conditions that v1beta1 shows.
func (m *MachineDeployment) GetV1Beta1Conditions() Conditions {
	if m.Status.Deprecated == nil || m.Status.Deprecated.V1Beta1 == nil {
		return nil
	}
	return m.Status.Deprecated.V1Beta1.Conditions
}

// SetV1Beta1Conditions replaces the conditions that v1beta1 shows.
func (m *MachineDeployment) SetV1Beta1Conditions(conditions Conditions) {
	if len(conditions) == 0 && len(m.GetV1Beta1Conditions()) == 0 {
		return
	}
	if m.Status.Deprecated == nil {
		m.Status.Deprecated = &MachineDeploymentDeprecatedStatus{}
	}
	if m.Status.Deprecated.V1Beta1 == nil {
		m.Status.Deprecated.V1Beta1 = &MachineDeploymentV1Beta1DeprecatedStatus{}
	}
	m.Status.Deprecated.V1Beta1.Conditions = conditions
}

// +kubebuilder:object:root=true

// MachineDeploymentList is a list of MachineDeployments.
type MachineDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineDeployment `json:"items"`
}
