package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineFinalizer blocks the deletion of a Machine until its Node is drained and its infrastructure is gone.
const MachineFinalizer = "machine.cluster.x-k8s.io"

// MachineSpec is the desired state of a machine.
type MachineSpec struct {
	// clusterName is the name of the Cluster this machine belongs to, in the same namespace. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`

	// bootstrap is the source of the data that turns the machine into a Node.
	// +required
	Bootstrap Bootstrap `json:"bootstrap,omitempty,omitzero"`

	// infrastructureRef references the infrastructure provider's object for this machine; in templates of machines, the
	// template that such objects are cloned from.
	// +required
	InfrastructureRef ContractVersionedObjectReference `json:"infrastructureRef,omitempty,omitzero"`

	// version is the Kubernetes version of the machine, such as v1.34.1; a missing "v" is prepended.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// providerID identifies the machine to its infrastructure and equals spec.providerID of its Node. Set by the controller
	// from the infrastructure object.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`

	// failureDomain is where the machine is placed: a name in the Cluster's status.failureDomains.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`

	// minReadySeconds is how many seconds the machine must be ready to count as available. When unset, 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// readinessGates are further conditions of the Machine that must be healthy for it to be ready. For control plane
	// machines, the owner sets them.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=conditionType
	ReadinessGates []MachineReadinessGate `json:"readinessGates,omitempty"`

	// deletion limits the steps of deleting the machine.
	// +optional
	Deletion MachineDeletionSpec `json:"deletion,omitempty,omitzero"`

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
type MachineReadinessGate struct {
	// conditionType is the type of a condition of the Machine. A missing condition counts as unknown.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	ConditionType string `json:"conditionType,omitempty"`

	// polarity is Positive when the status True is healthy, and Negative when it is False. When unset, Positive.
	// +optional
	// +kubebuilder:validation:Enum=Positive;Negative
	Polarity ConditionPolarity `json:"polarity,omitempty"`
}

// MachineDeletionSpec limits the steps of deleting a machine.
// +kubebuilder:validation:MinProperties=1
type MachineDeletionSpec struct {
	// nodeDrainTimeoutSeconds limits how long draining the Node may take, in seconds. When unset or 0, there is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeDrainTimeoutSeconds *int32 `json:"nodeDrainTimeoutSeconds,omitempty"`

	// nodeVolumeDetachTimeoutSeconds limits the wait for volumes to detach from the Node, in seconds. When unset or 0, there
	// is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeVolumeDetachTimeoutSeconds *int32 `json:"nodeVolumeDetachTimeoutSeconds,omitempty"`

	// nodeDeletionTimeoutSeconds limits how long deleting the Node object is retried once the machine is gone, in seconds.
	// When unset, 10; 0 means no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeDeletionTimeoutSeconds *int32 `json:"nodeDeletionTimeoutSeconds,omitempty"`
}

// MachineTaint is a taint that is kept on the Node of a machine.
type MachineTaint struct {
	// key is the key of the taint. Keys that Kubernetes or Cluster API manage are rejected, such as
	// node.kubernetes.io/unreachable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	Key string `json:"key,omitempty"`

	// value is the value of the taint.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	Value string `json:"value,omitempty"`

	// effect is NoSchedule, PreferNoSchedule or NoExecute.
	// +required
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect,omitempty"`

	// propagation is Always, to keep the taint on the Node, or OnInitialization, to set it once.
	// +required
	Propagation MachineTaintPropagation `json:"propagation,omitempty"`
}

// MachineTaintPropagation is when a taint of a Machine is set on its Node.
// +kubebuilder:validation:Enum=Always;OnInitialization
type MachineTaintPropagation string

const (
	// MachineTaintPropagationAlways keeps the taint on the Node, and removes it when it is removed from the Machine.
	MachineTaintPropagationAlways MachineTaintPropagation = "Always"
	// MachineTaintPropagationOnInitialization sets the taint once, when the Node is initialized, and leaves it to others afterwards.
	MachineTaintPropagationOnInitialization MachineTaintPropagation = "OnInitialization"
)

// Bootstrap is the source of a machine's bootstrap data: at least one of its fields must be set.
type Bootstrap struct {
	// configRef references a bootstrap provider's object that generates the data; in templates of machines, the template
	// that such objects are cloned from.
	// +optional
	ConfigRef ContractVersionedObjectReference `json:"configRef,omitempty,omitzero"`

	// dataSecretName is the name of the Secret, in the same namespace, that holds the data. Set by the controller when
	// configRef is used. Infrastructure that needs no data accepts an empty name.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=253
	DataSecretName *string `json:"dataSecretName,omitempty"`
}

// MachineStatus is the observed state of a machine.
// +kubebuilder:validation:MinProperties=1
type MachineStatus struct {
	// conditions are the current conditions: Available, Ready, UpToDate, BootstrapConfigReady, InfrastructureReady,
	// NodeReady, NodeHealthy, HealthCheckSucceeded, OwnerRemediated, Updating, Deleting and Paused; of control plane
	// machines also those of their components.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is the progress of creating the machine. The values never return to false.
	// +optional
	Initialization MachineInitializationStatus `json:"initialization,omitempty,omitzero"`

	// nodeRef references the Node in the workload cluster, once there is one.
	// +optional
	NodeRef MachineNodeReference `json:"nodeRef,omitempty,omitzero"`

	// nodeInfo is the Node's own report of its versions and identities.
	// +optional
	NodeInfo *corev1.NodeSystemInfo `json:"nodeInfo,omitempty"`

	// lastUpdated is when phase last changed.
	// +optional
	LastUpdated metav1.Time `json:"lastUpdated,omitempty,omitzero"`

	// failureDomain is where the machine actually is, as reported by its infrastructure.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`

	// addresses is copied from the infrastructure object.
	// +optional
	Addresses MachineAddresses `json:"addresses,omitempty"`

	// phase is the phase of the machine's lifecycle. For users; controllers read conditions.
	// +optional
	// +kubebuilder:validation:Enum=Pending;Provisioning;Provisioned;Running;Updating;Deleting;Deleted;Failed;Unknown
	Phase string `json:"phase,omitempty"`

	// certificatesExpiryDate is when the certificates of a control plane machine expire.
	// +optional
	CertificatesExpiryDate metav1.Time `json:"certificatesExpiryDate,omitempty,omitzero"`

	// observedGeneration is the latest metadata.generation observed by the controller.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// deletion is when the steps of deleting the machine started.
	// +optional
	Deletion *MachineDeletionStatus `json:"deletion,omitempty"`

	// deprecated groups what an older API version shows, and controllers no longer use.
	// +optional
	Deprecated *MachineDeprecatedStatus `json:"deprecated,omitempty"`
}

// MachineInitializationStatus is the progress of creating a machine.
// +kubebuilder:validation:MinProperties=1
type MachineInitializationStatus struct {
	// infrastructureProvisioned is true once the infrastructure provider reports that the machine is provisioned.
	// +optional
	InfrastructureProvisioned *bool `json:"infrastructureProvisioned,omitempty"`

	// bootstrapDataSecretCreated is true once the bootstrap data exists.
	// +optional
	BootstrapDataSecretCreated *bool `json:"bootstrapDataSecretCreated,omitempty"`
}

// MachineNodeReference references the Node of a machine.
type MachineNodeReference struct {
	// name is the name of the Node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`
}

// IsDefined reports whether there is a Node.
func (r *MachineNodeReference) IsDefined() bool { return r != nil && r.Name != "" }

// MachineDeletionStatus is when the steps of deleting a machine started. Timeouts count from these times.
type MachineDeletionStatus struct {
	// waitForPreDrainHookStartTime is when the wait for pre-drain hooks started.
	// +optional
	WaitForPreDrainHookStartTime metav1.Time `json:"waitForPreDrainHookStartTime,omitempty,omitzero"`

	// nodeDrainStartTime is when draining the Node started.
	// +optional
	NodeDrainStartTime metav1.Time `json:"nodeDrainStartTime,omitempty,omitzero"`

	// waitForNodeVolumeDetachStartTime is when the wait for volumes to detach from the Node started.
	// +optional
	WaitForNodeVolumeDetachStartTime metav1.Time `json:"waitForNodeVolumeDetachStartTime,omitempty,omitzero"`

	// waitForPreTerminateHookStartTime is when the wait for pre-terminate hooks started.
	// +optional
	WaitForPreTerminateHookStartTime metav1.Time `json:"waitForPreTerminateHookStartTime,omitempty,omitzero"`
}

// MachineDeprecatedStatus groups what an older API version shows, and controllers no longer use.
type MachineDeprecatedStatus struct {
	// v1beta1 is the status that only v1beta1 has. It is removed together with that version.
	// +optional
	V1Beta1 *MachineV1Beta1DeprecatedStatus `json:"v1beta1,omitempty"`
}

// MachineV1Beta1DeprecatedStatus is the status that only v1beta1 has.
type MachineV1Beta1DeprecatedStatus struct {
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
}

// MachineTemplateSpec is the template of a set of machines.
type MachineTemplateSpec struct {
	// metadata is set on each machine, and updated in place when it changes.
	// +optional
	ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the spec of each machine, with references to templates in place of objects.
	// +required
	Spec MachineSpec `json:"spec,omitempty,omitzero"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=machines,shortName=ma,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.clusterName",description="Cluster the Machine belongs to"
// +kubebuilder:printcolumn:name="Node Name",type="string",JSONPath=".status.nodeRef.name",description="Node in the workload cluster"
// +kubebuilder:printcolumn:name="Provider ID",type="string",JSONPath=".spec.providerID",description="ID of the machine in its infrastructure",priority=10
// +kubebuilder:printcolumn:name="Failure domain",type="string",JSONPath=".status.failureDomain",description="Failure domain the machine is in"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the condition Ready is True"
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="Whether the condition Available is True"
// +kubebuilder:printcolumn:name="Up-to-date",type="string",JSONPath=`.status.conditions[?(@.type=="UpToDate")].status`,description="Whether the condition UpToDate is True"
// +kubebuilder:printcolumn:name="Internal-IP",type="string",JSONPath=`.status.addresses[?(@.type=="InternalIP")].address`,description="Internal IP addresses of the machine",priority=10
// +kubebuilder:printcolumn:name="External-IP",type="string",JSONPath=`.status.addresses[?(@.type=="ExternalIP")].address`,description="External IP addresses of the machine",priority=10
// +kubebuilder:printcolumn:name="OS-Image",type="string",JSONPath=".status.nodeInfo.osImage",description="Operating system, as reported by the Node",priority=10
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether the Machine is paused",priority=10
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase",description="Phase of the Machine"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.version",description="Kubernetes version of the machine"

// Machine is a host that is or will be a Node of a Cluster. Machines are replaced unless they can be updated in place.
type Machine struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of objects.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec MachineSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status MachineStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the Machine.
func (m *Machine) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions replaces the conditions of the Machine.
func (m *Machine) SetConditions(conditions []metav1.Condition) { m.Status.Conditions = conditions }

// GetV1Beta1Status returns the status that only v1beta1 has.
func (m *Machine) GetV1Beta1Status() MachineV1Beta1DeprecatedStatus {
	if m.Status.Deprecated == nil || m.Status.Deprecated.V1Beta1 == nil {
		return MachineV1Beta1DeprecatedStatus{}
	}
	return *m.Status.Deprecated.V1Beta1
}

// SetV1Beta1Status replaces the status that only v1beta1 has, including its conditions.
func (m *Machine) SetV1Beta1Status(status MachineV1Beta1DeprecatedStatus) {
	if m.Status.Deprecated == nil && equality.Semantic.DeepEqual(status, MachineV1Beta1DeprecatedStatus{}) {
		return
	}
	m.Status.Deprecated = &MachineDeprecatedStatus{V1Beta1: &status}
}

// GetV1Beta1Conditions returns the conditions that v1beta1 shows.
func (m *Machine) GetV1Beta1Conditions() Conditions {
	if m.Status.Deprecated == nil || m.Status.Deprecated.V1Beta1 == nil {
		return nil
	}
	return m.Status.Deprecated.V1Beta1.Conditions
}

// SetV1Beta1Conditions replaces the conditions that v1beta1 shows.
func (m *Machine) SetV1Beta1Conditions(conditions Conditions) {
	if len(conditions) == 0 && len(m.GetV1Beta1Conditions()) == 0 {
		return
	}
	if m.Status.Deprecated == nil {
		m.Status.Deprecated = &MachineDeprecatedStatus{}
	}
	if m.Status.Deprecated.V1Beta1 == nil {
		m.Status.Deprecated.V1Beta1 = &MachineV1Beta1DeprecatedStatus{}
	}
	m.Status.Deprecated.V1Beta1.Conditions = conditions
}

// +kubebuilder:object:root=true

// MachineList is a list of Machines.
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Machine `json:"items"`
}
