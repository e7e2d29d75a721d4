package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Format is the format of bootstrap data.
// +kubebuilder:validation:Enum=cloud-config;ignition
type Format string

const (
	// CloudConfig renders cloud-init user data; it is the default.
	CloudConfig Format = "cloud-config"

	// Ignition renders an Ignition document; it requires the feature gate KubeadmBootstrapFormatIgnition.
	Ignition Format = "ignition"
)

// KubeadmConfigSpec is how a machine is turned into a Kubernetes Node with kubeadm.
//
// ClusterConfiguration and InitConfiguration are used by the machine that initializes the control plane,
// JoinConfiguration by all others.
type KubeadmConfigSpec struct {
	// clusterConfiguration is kubeadm's cluster-wide configuration; the machine that runs `kubeadm init` uses it together
	// with initConfiguration.
	// +optional
	ClusterConfiguration *ClusterConfiguration `json:"clusterConfiguration,omitempty"`

	// initConfiguration is the machine's configuration for `kubeadm init`.
	// +optional
	InitConfiguration *InitConfiguration `json:"initConfiguration,omitempty"`

	// joinConfiguration is the configuration for `kubeadm join`; it is used by workers and by further control plane
	// machines.
	// +optional
	JoinConfiguration *JoinConfiguration `json:"joinConfiguration,omitempty"`

	// files are written to the machine before any command runs.
	// +optional
	Files []File `json:"files,omitempty"`

	// diskSetup describes partitions and file systems to create at first boot.
	// +optional
	DiskSetup *DiskSetup `json:"diskSetup,omitempty"`

	// mounts lists file systems to mount; each entry holds the columns of one fstab line, device first.
	// +optional
	Mounts []MountPoints `json:"mounts,omitempty"`

	// bootCommands are shell commands that run, in order, early in every boot; not supported by the Ignition format.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=10240
	BootCommands []string `json:"bootCommands,omitempty"`

	// preKubeadmCommands are shell commands that run, in order, before kubeadm.
	// +optional
	PreKubeadmCommands []string `json:"preKubeadmCommands,omitempty"`

	// postKubeadmCommands are shell commands that run, in order, after kubeadm succeeded.
	// +optional
	PostKubeadmCommands []string `json:"postKubeadmCommands,omitempty"`

	// users are accounts to create on the machine.
	// +optional
	Users []User `json:"users,omitempty"`

	// ntp configures time synchronization.
	// +optional
	NTP *NTP `json:"ntp,omitempty"`

	// format is the format of the bootstrap data, cloud-config when unset.
	// +optional
	Format Format `json:"format,omitempty"`

	// verbosity is passed to kubeadm as its --v flag, which is omitted when unset.
	// +optional
	Verbosity *int32 `json:"verbosity,omitempty"`

	// useExperimentalRetryJoin wraps `kubeadm join` in a script that retries each of its phases. Deprecated: kubeadm retries
	// by itself.
	// +optional
	UseExperimentalRetryJoin bool `json:"useExperimentalRetryJoin,omitempty"`

	// ignition customizes the Ignition document; only allowed with format ignition.
	// +optional
	Ignition *IgnitionSpec `json:"ignition,omitempty"`
}

// IgnitionSpec customizes an Ignition document.
type IgnitionSpec struct {
	// containerLinuxConfig customizes the Container Linux Config from which the Ignition document is generated.
	// +optional
	ContainerLinuxConfig *ContainerLinuxConfig `json:"containerLinuxConfig,omitempty"`
}

// ContainerLinuxConfig customizes the Container Linux Config from which an Ignition document is generated.
type ContainerLinuxConfig struct {
	// additionalConfig is a Container Linux Config in YAML that is merged with the generated one.
	// +optional
	AdditionalConfig string `json:"additionalConfig,omitempty"`

	// strict turns warnings of the conversion into errors.
	// +optional
	Strict bool `json:"strict,omitempty"`
}

// KubeadmConfigStatus reports whether the bootstrap data of a machine is available.
type KubeadmConfigStatus struct {
	// ready is true once the bootstrap data is stored.
	// +optional
	Ready bool `json:"ready,omitempty"`

	// dataSecretName is the name of the Secret, in the namespace of this object, with the bootstrap data.
	// +optional
	DataSecretName *string `json:"dataSecretName,omitempty"`

	// failureReason is a short machine-readable reason of a terminal failure.
	// +optional
	FailureReason string `json:"failureReason,omitempty"`

	// failureMessage explains failureReason to users.
	// +optional
	FailureMessage string `json:"failureMessage,omitempty"`

	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the current conditions.
	// +optional
	Conditions clusterv1.Conditions `json:"conditions,omitempty"`

	// v1beta2 is the part of the status that v1beta2 added, at the same paths below .status.
	// +optional
	V1Beta2 *KubeadmConfigV1Beta2Status `json:"v1beta2,omitempty"`
}

// KubeadmConfigV1Beta2Status is the part of the status of a bootstrap configuration that v1beta2 added.
type KubeadmConfigV1Beta2Status struct {
	// conditions are the current conditions, with the types and reasons of v1beta2.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// KubeadmConfig generates the bootstrap data of a machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubeadmconfigs,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster to which this object belongs"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type KubeadmConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   KubeadmConfigSpec   `json:"spec,omitempty"`
	Status KubeadmConfigStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (c *KubeadmConfig) GetConditions() clusterv1.Conditions {
	return c.Status.Conditions
}

// SetConditions replaces the conditions of the status.
func (c *KubeadmConfig) SetConditions(conditions clusterv1.Conditions) {
	c.Status.Conditions = conditions
}

// GetV1Beta2Conditions returns the conditions that v1beta2 shows.
func (c *KubeadmConfig) GetV1Beta2Conditions() []metav1.Condition {
	if c.Status.V1Beta2 == nil {
		return nil
	}
	return c.Status.V1Beta2.Conditions
}

// SetV1Beta2Conditions replaces the conditions that v1beta2 shows.
func (c *KubeadmConfig) SetV1Beta2Conditions(conditions []metav1.Condition) {
	if c.Status.V1Beta2 == nil {
		c.Status.V1Beta2 = &KubeadmConfigV1Beta2Status{}
	}
	c.Status.V1Beta2.Conditions = conditions
}

// KubeadmConfigList is a list of KubeadmConfigs.
//
// +kubebuilder:object:root=true
type KubeadmConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubeadmConfig `json:"items"`
}
