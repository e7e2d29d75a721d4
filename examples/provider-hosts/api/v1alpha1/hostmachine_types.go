package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// HostMachineFinalizer keeps a HostMachine until its Host is released.
	HostMachineFinalizer = "infrastructure.cluster.x-k8s.io/host-release"
	// AbandonAnnotation on a HostMachine that is being deleted releases its Host without a reset. The Host becomes
	// unschedulable.
	AbandonAnnotation = "hostmachine.infrastructure.cluster.x-k8s.io/abandon-host"

	// HostClaimedCondition reports whether the HostMachine has a Host.
	HostClaimedCondition clusterv1.ConditionType = "HostClaimed"
	// BootstrappedCondition reports whether the bootstrap data ran on the Host, and succeeded.
	BootstrappedCondition clusterv1.ConditionType = "Bootstrapped"
	// HostReleasedCondition reports what blocks the release of the Host.
	HostReleasedCondition clusterv1.ConditionType = "HostReleased"

	// WaitingForClusterReason means that the Cluster's infrastructure is not ready.
	WaitingForClusterReason = "WaitingForClusterInfrastructure"
	// NoHostReason means that no Host is free that the HostMachine may claim.
	NoHostReason = "NoHostAvailable"
	// HostLostReason means that another HostMachine has claimed the Host, or that it is gone.
	HostLostReason = "HostLost"
	// WaitingForDataReason means that there is no bootstrap data yet.
	WaitingForDataReason = "WaitingForBootstrapData"
	// BootstrappingReason means that the bootstrap data runs on the Host.
	BootstrappingReason = "Bootstrapping"
	// BootstrapFailedReason means that the bootstrap data ran and failed. It does not run again.
	BootstrapFailedReason = "BootstrapFailed"
	// ResettingReason means that the reset command runs on the Host.
	ResettingReason = "Resetting"
	// ResetFailedReason means that the reset command ran and failed. It runs again.
	ResetFailedReason = "ResetFailed"
	// HostFailedReason means that the Host cannot be reached, or rejects a command.
	HostFailedReason = "HostFailed"
)

// HostMachineSpec specifies which Hosts can be claimed, and what runs on the Host.
type HostMachineSpec struct {
	// providerID is hosts://<namespace>/<Host>, set once the Host is bootstrapped. The provider writes it.
	// +optional
	ProviderID *string `json:"providerID,omitempty"`
	// failureDomain is the zone of the Host, for contract v1beta1. The provider writes it.
	// +optional
	FailureDomain *string `json:"failureDomain,omitempty"`
	// host is what the HostMachine has claimed. The provider writes it.
	// +optional
	Host *HostReference `json:"host,omitempty"`

	// selector selects Hosts by their labels. Empty: every Host.
	// +optional
	Selector metav1.LabelSelector `json:"selector,omitempty"`
	// bootstrapCommand runs once, as root in a shell, with the bootstrap data on its standard input. Empty: cloud-init.
	// +optional
	BootstrapCommand string `json:"bootstrapCommand,omitempty"`
	// resetCommand runs before the Host is released, as root in a shell. Empty: kubeadm reset, and cloud-init's state is removed.
	// +optional
	ResetCommand string `json:"resetCommand,omitempty"`
}

// HostReference is a claimed Host.
type HostReference struct {
	// name of the Host.
	Name string `json:"name"`
	// claim is the id of the Host's claim. It differs from the HostMachine's UID after clusterctl move.
	Claim types.UID `json:"claim"`
}

// HostMachineStatus reports a machine, for contracts v1beta1 and v1beta2.
type HostMachineStatus struct {
	// initialization reports what happened once.
	// +optional
	Initialization Initialization `json:"initialization,omitempty,omitzero"`
	// addresses of the Host.
	// +optional
	Addresses []clusterv1.MachineAddress `json:"addresses,omitempty"`
	// failureDomain is the zone of the Host.
	// +optional
	FailureDomain string `json:"failureDomain,omitempty"`
	// conditions describe the present state.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// deprecated has the conditions with severities.
	// +optional
	Deprecated *Deprecated `json:"deprecated,omitempty"`
	// ready is the same as initialization.provisioned, for contract v1beta1.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// failureReason is set when the bootstrap data failed permanently: the Machine must be replaced. Only contract v1beta1 reads it.
	// +optional
	FailureReason *clusterv1beta1.MachineStatusError `json:"failureReason,omitempty"`
	// failureMessage describes what failed.
	// +optional
	FailureMessage *string `json:"failureMessage,omitempty"`
}

// HostMachine is a Machine on a Host.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hostmachines,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha1"}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Host",type="string",JSONPath=".spec.host.name"
// +kubebuilder:printcolumn:name="Ready",type="boolean",JSONPath=".status.initialization.provisioned"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason"
type HostMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   HostMachineSpec   `json:"spec,omitempty"`
	Status HostMachineStatus `json:"status,omitempty"`
}

// SetProvisioned reports, for both contracts, that the machine was provisioned.
func (m *HostMachine) SetProvisioned() {
	m.Status.Initialization.Provisioned, m.Status.Ready = true, true
}

// GetConditions returns the conditions of the status.
func (m *HostMachine) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (m *HostMachine) SetConditions(conditions []metav1.Condition) { m.Status.Conditions = conditions }

// GetV1Beta1Conditions returns the conditions with severities.
func (m *HostMachine) GetV1Beta1Conditions() clusterv1.Conditions {
	return m.Status.Deprecated.V1Beta1Conditions()
}

// SetV1Beta1Conditions replaces the conditions with severities.
func (m *HostMachine) SetV1Beta1Conditions(conditions clusterv1.Conditions) {
	m.Status.Deprecated = WithV1Beta1Conditions(conditions)
}

// HostMachineList is a list of HostMachines.
//
// +kubebuilder:object:root=true
type HostMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HostMachine `json:"items"`
}

// HostMachineTemplateSpec wraps the template.
type HostMachineTemplateSpec struct {
	// template is what HostMachines are made from.
	Template HostMachineTemplateResource `json:"template"`
}

// HostMachineTemplateResource is what HostMachines are made from.
type HostMachineTemplateResource struct {
	// metadata holds labels and annotations that every HostMachine gets.
	// +optional
	ObjectMeta clusterv1beta1.ObjectMeta `json:"metadata,omitempty"`
	// spec of every HostMachine.
	Spec HostMachineSpec `json:"spec"`
}

// HostMachineTemplateStatus describes the Hosts that a template selects. The cluster autoscaler reads it to scale from zero. The provider
// does not know it: users set it.
type HostMachineTemplateStatus struct {
	// capacity of every such Host.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// nodeInfo of every such Host.
	// +optional
	NodeInfo NodeInfo `json:"nodeInfo,omitempty,omitzero"`
}

// NodeInfo is the platform of a Host.
// +kubebuilder:validation:MinProperties=1
type NodeInfo struct {
	// architecture of the processor.
	// +kubebuilder:validation:Enum=amd64;arm64;s390x;ppc64le
	// +optional
	Architecture string `json:"architecture,omitempty"`
	// operatingSystem, such as linux.
	// +optional
	OperatingSystem string `json:"operatingSystem,omitempty"`
}

// HostMachineTemplate is what HostMachines are made from.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hostmachinetemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha1"}
// +kubebuilder:subresource:status
type HostMachineTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec HostMachineTemplateSpec `json:"spec"`
	// +optional
	Status HostMachineTemplateStatus `json:"status,omitempty,omitzero"`
}

// HostMachineTemplateList is a list of HostMachineTemplates.
//
// +kubebuilder:object:root=true
type HostMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HostMachineTemplate `json:"items"`
}
