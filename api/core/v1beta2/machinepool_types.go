package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachinePoolFinalizer blocks the deletion of a MachinePool until its infrastructure is gone.
const MachinePoolFinalizer = "machinepool.cluster.x-k8s.io"

// MachinePoolSpec is the desired state of a pool of machines.
type MachinePoolSpec struct {
	// clusterName is the name of the Cluster this pool belongs to, in the same namespace. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`

	// replicas is the number of machines. When unset, 1. With ReplicasManagedByAnnotation, the infrastructure provider sets
	// it.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// template is the template of the machines. Unlike elsewhere, its references are to the pool's own objects, shared by
	// all machines.
	// +required
	Template MachineTemplateSpec `json:"template,omitempty,omitzero"`

	// providerIDList identifies the machines to their infrastructure, as spec.providerID of the Nodes. Set by the controller
	// from the infrastructure object.
	// +optional
	// +kubebuilder:validation:MaxItems=10000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=atomic
	ProviderIDList []string `json:"providerIDList,omitempty"`

	// failureDomains is where the machines are placed: names in the Cluster's status.failureDomains.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	FailureDomains []string `json:"failureDomains,omitempty"`
}

// MachinePoolStatus is the observed state of a pool of machines.
// +kubebuilder:validation:MinProperties=1
type MachinePoolStatus struct {
	// conditions are the current conditions.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is the progress of creating the pool. The values never return to false.
	// +optional
	Initialization MachinePoolInitializationStatus `json:"initialization,omitempty,omitzero"`

	// nodeRefs name the Nodes of the pool in the workload cluster.
	// +optional
	// +kubebuilder:validation:MaxItems=10000
	// +listType=atomic
	NodeRefs []corev1.ObjectReference `json:"nodeRefs,omitempty"`

	// replicas is the number of machines that the infrastructure reports.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// readyReplicas is how many of them have the condition Ready, or a ready Node if the pool has no Machines.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// availableReplicas is how many of them have been ready for minReadySeconds.
	// +optional
	AvailableReplicas *int32 `json:"availableReplicas,omitempty"`

	// upToDateReplicas is how many of them match the template.
	// +optional
	UpToDateReplicas *int32 `json:"upToDateReplicas,omitempty"`

	// versions is how many machines have which Kubernetes version, in ascending order.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=version
	Versions []StatusVersion `json:"versions,omitempty"`

	// phase is the phase of the pool's lifecycle. For users; controllers read conditions.
	// +optional
	// +kubebuilder:validation:Enum=Pending;Provisioning;Provisioned;Running;ScalingUp;ScalingDown;Scaling;Deleting;Failed;Unknown
	Phase string `json:"phase,omitempty"`

	// observedGeneration is the latest metadata.generation observed by the controller.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// deprecated groups what an older API version shows, and controllers no longer use.
	// +optional
	Deprecated *MachinePoolDeprecatedStatus `json:"deprecated,omitempty"`
}

// MachinePoolInitializationStatus is the progress of creating a pool of machines.
// +kubebuilder:validation:MinProperties=1
type MachinePoolInitializationStatus struct {
	// infrastructureProvisioned is true once the infrastructure provider reports that the pool is provisioned.
	// +optional
	InfrastructureProvisioned *bool `json:"infrastructureProvisioned,omitempty"`

	// bootstrapDataSecretCreated is true once the bootstrap data exists.
	// +optional
	BootstrapDataSecretCreated *bool `json:"bootstrapDataSecretCreated,omitempty"`
}

// MachinePoolDeprecatedStatus groups what an older API version shows, and controllers no longer use.
type MachinePoolDeprecatedStatus struct {
	// v1beta1 is the status that only v1beta1 has. It is removed together with that version.
	// +optional
	V1Beta1 *MachinePoolV1Beta1DeprecatedStatus `json:"v1beta1,omitempty"`
}

// MachinePoolV1Beta1DeprecatedStatus is the status that only v1beta1 has.
type MachinePoolV1Beta1DeprecatedStatus struct {
	// conditions are the conditions of v1beta1, with severities.
	// +optional
	Conditions Conditions `json:"conditions,omitempty"`

	// failureReason is the class of a failure that retries cannot fix, as copied from a provider. It has no effect.
	// +optional
	FailureReason *string `json:"failureReason,omitempty"`

	// failureMessage explains failureReason to users.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	FailureMessage *string `json:"failureMessage,omitempty"`

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
// +kubebuilder:resource:path=machinepools,shortName=mp,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.clusterName",description="Cluster the MachinePool belongs to"
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".spec.replicas",description="Desired number of machines"
// +kubebuilder:printcolumn:name="Current",type="integer",JSONPath=".status.replicas",description="Number of machines"
// +kubebuilder:printcolumn:name="Ready",type="integer",JSONPath=".status.readyReplicas",description="Number of machines whose condition Ready is True"
// +kubebuilder:printcolumn:name="Available",type="integer",JSONPath=".status.availableReplicas",description="Number of machines whose condition Available is True"
// +kubebuilder:printcolumn:name="Up-to-date",type="integer",JSONPath=".status.upToDateReplicas",description="Number of machines whose condition UpToDate is True"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether the MachinePool is paused",priority=10
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase",description="Phase of the MachinePool"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.template.spec.version",description="Kubernetes version of new machines"

// MachinePool is a group of identical machines that the infrastructure itself manages as a unit.
type MachinePool struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of objects.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec MachinePoolSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status MachinePoolStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the MachinePool.
func (m *MachinePool) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions replaces the conditions of the MachinePool.
func (m *MachinePool) SetConditions(conditions []metav1.Condition) { m.Status.Conditions = conditions }

// GetV1Beta1Status returns the status that only v1beta1 has.
func (m *MachinePool) GetV1Beta1Status() MachinePoolV1Beta1DeprecatedStatus {
	if m.Status.Deprecated == nil || m.Status.Deprecated.V1Beta1 == nil {
		return MachinePoolV1Beta1DeprecatedStatus{}
	}
	return *m.Status.Deprecated.V1Beta1
}

// SetV1Beta1Status replaces the status that only v1beta1 has, including its conditions.
func (m *MachinePool) SetV1Beta1Status(status MachinePoolV1Beta1DeprecatedStatus) {
	if m.Status.Deprecated == nil && equality.Semantic.DeepEqual(status, MachinePoolV1Beta1DeprecatedStatus{}) {
		return
	}
	m.Status.Deprecated = &MachinePoolDeprecatedStatus{V1Beta1: &status}
}

// GetV1Beta1Conditions returns the conditions that v1beta1 shows.
func (m *MachinePool) GetV1Beta1Conditions() Conditions {
	if m.Status.Deprecated == nil || m.Status.Deprecated.V1Beta1 == nil {
		return nil
	}
	return m.Status.Deprecated.V1Beta1.Conditions
}

// SetV1Beta1Conditions replaces the conditions that v1beta1 shows.
func (m *MachinePool) SetV1Beta1Conditions(conditions Conditions) {
	if len(conditions) == 0 && len(m.GetV1Beta1Conditions()) == 0 {
		return
	}
	if m.Status.Deprecated == nil {
		m.Status.Deprecated = &MachinePoolDeprecatedStatus{}
	}
	if m.Status.Deprecated.V1Beta1 == nil {
		m.Status.Deprecated.V1Beta1 = &MachinePoolV1Beta1DeprecatedStatus{}
	}
	m.Status.Deprecated.V1Beta1.Conditions = conditions
}

// +kubebuilder:object:root=true

// MachinePoolList is a list of MachinePools.
type MachinePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachinePool `json:"items"`
}
