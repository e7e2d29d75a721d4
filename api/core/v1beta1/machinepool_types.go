package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachinePoolSpec is the desired state of a pool of machines.
type MachinePoolSpec struct {
	// clusterName is the name of the Cluster this pool belongs to, in the same namespace. Immutable.
	// +kubebuilder:validation:MinLength=1
	ClusterName string `json:"clusterName"`

	// replicas is the number of machines. When unset, 1. With ReplicasManagedByAnnotation, the infrastructure provider
	// sets it.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// template is the template of the machines. Unlike elsewhere, its references are to the pool's own objects, shared by
	// all machines.
	Template MachineTemplateSpec `json:"template"`

	// minReadySeconds is how many seconds a Node must be ready to count as available. When unset, 0.
	// +optional
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// providerIDList identifies the machines to their infrastructure, as spec.providerID of the Nodes. Set by the
	// controller from the infrastructure object.
	// +optional
	ProviderIDList []string `json:"providerIDList,omitempty"`

	// failureDomains is where the machines are placed: keys of the Cluster's status.failureDomains.
	// +optional
	FailureDomains []string `json:"failureDomains,omitempty"`
}

// MachinePoolStatus is the observed state of a pool of machines.
type MachinePoolStatus struct {
	// nodeRefs name the Nodes of the pool in the workload cluster.
	// +optional
	NodeRefs []corev1.ObjectReference `json:"nodeRefs,omitempty"`

	// replicas is the number of machines that the infrastructure reports.
	// +optional
	Replicas int32 `json:"replicas"`

	// readyReplicas is how many of them have a ready Node.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// availableReplicas is how many of them have a Node that has been ready for minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// unavailableReplicas is how many more machines must become available.
	// +optional
	UnavailableReplicas int32 `json:"unavailableReplicas,omitempty"`

	// failureReason is set after a failure that retries cannot fix; it is the class of the failure.
	// +optional
	FailureReason *MachinePoolStatusFailure `json:"failureReason,omitempty"`

	// failureMessage explains failureReason to users.
	// +optional
	FailureMessage *string `json:"failureMessage,omitempty"`

	// phase is the phase of the pool's lifecycle: Pending, Provisioning, Provisioned, Running, ScalingUp, ScalingDown,
	// Scaling, Deleting, Failed or Unknown. For users; controllers read conditions.
	// +optional
	Phase string `json:"phase,omitempty"`

	// bootstrapReady is true once the bootstrap data exists.
	// +optional
	BootstrapReady bool `json:"bootstrapReady"`

	// infrastructureReady is true once the infrastructure provider reports that it is ready.
	// +optional
	InfrastructureReady bool `json:"infrastructureReady"`

	// observedGeneration is the latest metadata.generation observed by the controller.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

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
	V1Beta2 *MachinePoolV1Beta2Status `json:"v1beta2,omitempty"`
}

// MachinePoolV1Beta2Status is the part of the status of a pool of machines that v1beta2 added.
type MachinePoolV1Beta2Status struct {
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
// +kubebuilder:resource:path=machinepools,shortName=mp,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.clusterName",description="Cluster the MachinePool belongs to"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=".spec.replicas",description="Machines asked for",priority=10
// +kubebuilder:printcolumn:name="Replicas",type="string",JSONPath=".status.replicas",description="Machines there are"
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase",description="Where the MachinePool is in its life"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.template.spec.version",description="Kubernetes version of the machines"

// MachinePool is a group of identical machines that the infrastructure itself manages as a unit.
type MachinePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MachinePoolSpec   `json:"spec,omitempty"`
	Status MachinePoolStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the MachinePool.
func (m *MachinePool) GetConditions() Conditions { return m.Status.Conditions }

// SetConditions replaces the conditions of the MachinePool.
func (m *MachinePool) SetConditions(conditions Conditions) { m.Status.Conditions = conditions }

// GetV1Beta2Conditions returns the conditions that v1beta2 shows.
func (m *MachinePool) GetV1Beta2Conditions() []metav1.Condition {
	if m.Status.V1Beta2 == nil {
		return nil
	}
	return m.Status.V1Beta2.Conditions
}

// SetV1Beta2Conditions replaces the conditions that v1beta2 shows.
func (m *MachinePool) SetV1Beta2Conditions(conditions []metav1.Condition) {
	if m.Status.V1Beta2 == nil {
		m.Status.V1Beta2 = &MachinePoolV1Beta2Status{}
	}
	m.Status.V1Beta2.Conditions = conditions
}

// +kubebuilder:object:root=true

// MachinePoolList is a list of MachinePools.
type MachinePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachinePool `json:"items"`
}
