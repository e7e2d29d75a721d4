package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
}

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

	// conditions are the current conditions, set by the controllers.
	// +optional
	Conditions Conditions `json:"conditions,omitempty"`
}

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

// +kubebuilder:object:root=true

// MachineList is a list of Machines.
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Machine `json:"items"`
}
