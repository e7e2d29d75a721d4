package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MachineSpec is the desired state of a machine.
type MachineSpec struct {
	// clusterName is the name of the Cluster this machine belongs to, in the same namespace. Immutable.
	// +kubebuilder:validation:MinLength=1
	ClusterName string `json:"clusterName"`

	// bootstrap is the source of the data that turns the machine into a Node.
	Bootstrap Bootstrap `json:"bootstrap"`

	// infrastructureRef references the infrastructure provider's object for this machine; in templates of machines, the
	// template that such objects are cloned from.
	InfrastructureRef corev1.ObjectReference `json:"infrastructureRef"`

	// version is the Kubernetes version of the machine, such as v1.30.1; a missing "v" is prepended.
	// +optional
	Version *string `json:"version,omitempty"`

	// providerID identifies the machine to its infrastructure and equals spec.providerID of its Node. Set by the
	// controller from the infrastructure object.
	// +optional
	ProviderID *string `json:"providerID,omitempty"`

	// failureDomain is where the machine is placed: a key of the Cluster's status.failureDomains.
	// +optional
	FailureDomain *string `json:"failureDomain,omitempty"`

	// readinessGates are further conditions of the Machine that must be healthy for it to be ready. For control plane
	// machines, the owner sets them.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=conditionType
	ReadinessGates []MachineReadinessGate `json:"readinessGates,omitempty"`

	// nodeDrainTimeout limits how long draining the Node may take when the machine is deleted. When unset or 0, there
	// is no limit.
	// +optional
	NodeDrainTimeout *metav1.Duration `json:"nodeDrainTimeout,omitempty"`

	// nodeVolumeDetachTimeout limits the wait for volumes to detach from the Node when the machine is deleted. When
	// unset or 0, there is no limit.
	// +optional
	NodeVolumeDetachTimeout *metav1.Duration `json:"nodeVolumeDetachTimeout,omitempty"`

	// nodeDeletionTimeout limits how long deleting the Node object is retried once the machine is gone. When unset, 10s;
	// 0 means no limit.
	// +optional
	NodeDeletionTimeout *metav1.Duration `json:"nodeDeletionTimeout,omitempty"`

	// taints are set on the Node. Taints that other clients set on it are kept. Changed in place. Requires the feature gate
	// MachineTaintPropagation.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	Taints []MachineTaint `json:"taints,omitempty"`
}

// MachineReadinessGate is a condition that must be healthy for a machine to be ready.
type MachineReadinessGate = clusterv1beta2.MachineReadinessGate

// MachineTaint is a taint of the Node of a machine.
type MachineTaint = clusterv1beta2.MachineTaint

// MachineTaintPropagation is when a taint of a Machine is set on its Node.
type MachineTaintPropagation = clusterv1beta2.MachineTaintPropagation

const (
	// MachineTaintPropagationAlways keeps the taint on the Node, and removes it when it is removed from the Machine.
	MachineTaintPropagationAlways = clusterv1beta2.MachineTaintPropagationAlways
	// MachineTaintPropagationOnInitialization sets the taint once, when the Node is initialized.
	MachineTaintPropagationOnInitialization = clusterv1beta2.MachineTaintPropagationOnInitialization
)

// Bootstrap is the source of a machine's bootstrap data: at least one of its fields must be set.
type Bootstrap struct {
	// configRef references a bootstrap provider's object that generates the data; in templates of machines, the template
	// that such objects are cloned from.
	// +optional
	ConfigRef *corev1.ObjectReference `json:"configRef,omitempty"`

	// dataSecretName is the name of the Secret, in the same namespace, that holds the data. Set by the controller when
	// configRef is used.
	// +optional
	DataSecretName *string `json:"dataSecretName,omitempty"`
}

// MachineStatus is the observed state of a machine.
type MachineStatus struct {
	// nodeRef names the Node in the workload cluster, once there is one.
	// +optional
	NodeRef *corev1.ObjectReference `json:"nodeRef,omitempty"`

	// nodeInfo is the Node's own report of its versions and identities.
	// +optional
	NodeInfo *corev1.NodeSystemInfo `json:"nodeInfo,omitempty"`

	// lastUpdated is when phase last changed.
	// +optional
	LastUpdated *metav1.Time `json:"lastUpdated,omitempty"`

	// failureReason is set after a failure that retries cannot fix; it is the class of the failure. The machine should be
	// replaced.
	// +optional
	FailureReason *MachineStatusError `json:"failureReason,omitempty"`

	// failureMessage explains failureReason to users.
	// +optional
	FailureMessage *string `json:"failureMessage,omitempty"`

	// addresses is copied from the infrastructure object.
	// +optional
	Addresses MachineAddresses `json:"addresses,omitempty"`

	// phase is the phase of the machine's lifecycle: Pending, Provisioning, Provisioned, Running, Deleting, Deleted,
	// Failed or Unknown. For users; controllers read conditions.
	// +optional
	Phase string `json:"phase,omitempty"`

	// certificatesExpiryDate is when the certificates of a control plane machine expire.
	// +optional
	CertificatesExpiryDate *metav1.Time `json:"certificatesExpiryDate,omitempty"`

	// bootstrapReady is true once the bootstrap data exists.
	// +optional
	BootstrapReady bool `json:"bootstrapReady"`

	// infrastructureReady is true once the infrastructure provider reports that it is ready.
	// +optional
	InfrastructureReady bool `json:"infrastructureReady"`

	// observedGeneration is the latest metadata.generation observed by the controller.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// deletion is when the steps of deleting the machine started.
	// +optional
	Deletion *MachineDeletionStatus `json:"deletion,omitempty"`

	// conditions are the current conditions, set by the controllers.
	// +optional
	Conditions Conditions `json:"conditions,omitempty"`

	// v1beta2 is the part of the status that v1beta2 added, at the same paths below .status.
	// +optional
	V1Beta2 *MachineV1Beta2Status `json:"v1beta2,omitempty"`
}

// MachineV1Beta2Status is the part of the status of a machine that v1beta2 added.
type MachineV1Beta2Status struct {
	// conditions are the current conditions, with the types and reasons of v1beta2.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MachineDeletionStatus is when the steps of deleting a machine started. Timeouts count from these times.
type MachineDeletionStatus = clusterv1beta2.MachineDeletionStatus

// MachineTemplateSpec is the template of a set of machines.
type MachineTemplateSpec struct {
	// metadata is set on each machine, and updated in place when it changes.
	// +optional
	ObjectMeta `json:"metadata,omitempty"`

	// spec is the spec of each machine, with references to templates in place of objects.
	// +optional
	Spec MachineSpec `json:"spec,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=machines,shortName=ma,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.clusterName",description="Cluster the Machine belongs to"
// +kubebuilder:printcolumn:name="NodeName",type="string",JSONPath=".status.nodeRef.name",description="Node in the workload cluster"
// +kubebuilder:printcolumn:name="ProviderID",type="string",JSONPath=".spec.providerID",description="What the infrastructure calls the machine"
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase",description="Where the Machine is in its life"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.version",description="Kubernetes version asked for"

// Machine is a host that is or will be a Node of a Cluster. Machines are replaced rather than changed.
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MachineSpec   `json:"spec,omitempty"`
	Status MachineStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the Machine.
func (m *Machine) GetConditions() Conditions { return m.Status.Conditions }

// SetConditions replaces the conditions of the Machine.
func (m *Machine) SetConditions(conditions Conditions) { m.Status.Conditions = conditions }

// GetV1Beta2Conditions returns the conditions that v1beta2 shows.
func (m *Machine) GetV1Beta2Conditions() []metav1.Condition {
	if m.Status.V1Beta2 == nil {
		return nil
	}
	return m.Status.V1Beta2.Conditions
}

// SetV1Beta2Conditions replaces the conditions that v1beta2 shows.
func (m *Machine) SetV1Beta2Conditions(conditions []metav1.Condition) {
	if m.Status.V1Beta2 == nil {
		m.Status.V1Beta2 = &MachineV1Beta2Status{}
	}
	m.Status.V1Beta2.Conditions = conditions
}

// +kubebuilder:object:root=true

// MachineList is a list of Machines.
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Machine `json:"items"`
}
