package v1beta2

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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
// +kubebuilder:validation:MinProperties=1
type KubeadmConfigSpec struct {
	// clusterConfiguration is kubeadm's cluster-wide configuration; the machine that runs `kubeadm init` uses it together
	// with initConfiguration.
	// +optional
	ClusterConfiguration ClusterConfiguration `json:"clusterConfiguration,omitempty,omitzero"`

	// initConfiguration is the machine's configuration for `kubeadm init`.
	// +optional
	InitConfiguration InitConfiguration `json:"initConfiguration,omitempty,omitzero"`

	// joinConfiguration is the configuration for `kubeadm join`; it is used by workers and by further control plane
	// machines.
	// +optional
	JoinConfiguration JoinConfiguration `json:"joinConfiguration,omitempty,omitzero"`

	// files are written to the machine before preKubeadmCommands run.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=200
	Files []File `json:"files,omitempty"`

	// diskSetup describes partitions and file systems to create at first boot.
	// +optional
	DiskSetup DiskSetup `json:"diskSetup,omitempty,omitzero"`

	// mounts lists file systems to mount; each entry holds the columns of one fstab line, device first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Mounts []MountPoints `json:"mounts,omitempty"`

	// bootCommands are shell commands that run, in order, early in every boot; not supported by the Ignition format.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=10240
	BootCommands []string `json:"bootCommands,omitempty"`

	// preKubeadmCommands are shell commands that run, in order, before kubeadm.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=10240
	PreKubeadmCommands []string `json:"preKubeadmCommands,omitempty"`

	// postKubeadmCommands are shell commands that run, in order, after kubeadm succeeded.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=10240
	PostKubeadmCommands []string `json:"postKubeadmCommands,omitempty"`

	// users are accounts to create on the machine.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Users []User `json:"users,omitempty"`

	// ntp configures time synchronization.
	// +optional
	NTP NTP `json:"ntp,omitempty,omitzero"`

	// format is the format of the bootstrap data, cloud-config when unset.
	// +optional
	Format Format `json:"format,omitempty"`

	// verbosity is passed to kubeadm as its --v flag, which is omitted when unset.
	// +optional
	Verbosity *int32 `json:"verbosity,omitempty"`

	// ignition customizes the Ignition document; only allowed with format ignition.
	// +optional
	Ignition IgnitionSpec `json:"ignition,omitempty,omitzero"`
}

// IgnitionSpec customizes an Ignition document.
// +kubebuilder:validation:MinProperties=1
type IgnitionSpec struct {
	// containerLinuxConfig customizes the Container Linux Config from which the Ignition document is generated.
	// +optional
	ContainerLinuxConfig ContainerLinuxConfig `json:"containerLinuxConfig,omitempty,omitzero"`
}

// ContainerLinuxConfig customizes the Container Linux Config from which an Ignition document is generated.
// +kubebuilder:validation:MinProperties=1
type ContainerLinuxConfig struct {
	// additionalConfig is a Container Linux Config in YAML that is merged with the generated one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	AdditionalConfig string `json:"additionalConfig,omitempty"`

	// strict turns warnings of the conversion into errors. Defaults to false.
	// +optional
	Strict *bool `json:"strict,omitempty"`
}

// KubeadmConfigStatus reports whether the bootstrap data of a machine is available.
// +kubebuilder:validation:MinProperties=1
type KubeadmConfigStatus struct {
	// conditions are the current conditions: Ready, DataSecretAvailable, CertificatesAvailable, Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is what was achieved once; controllers rely on it, conditions are for users.
	// +optional
	Initialization KubeadmConfigInitializationStatus `json:"initialization,omitempty,omitzero"`

	// dataSecretName is the name of the Secret, in the namespace of this object, with the bootstrap data.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	DataSecretName string `json:"dataSecretName,omitempty"`

	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// deprecated groups what goes with API version v1beta1.
	// +optional
	Deprecated *KubeadmConfigDeprecatedStatus `json:"deprecated,omitempty"`
}

// KubeadmConfigInitializationStatus is what was achieved once, and stays so.
// +kubebuilder:validation:MinProperties=1
type KubeadmConfigInitializationStatus struct {
	// dataSecretCreated is true once the bootstrap data is stored.
	// +optional
	DataSecretCreated *bool `json:"dataSecretCreated,omitempty"`
}

// KubeadmConfigDeprecatedStatus groups what goes with old API versions.
type KubeadmConfigDeprecatedStatus struct {
	// v1beta1 is what goes with API version v1beta1.
	// +optional
	V1Beta1 *KubeadmConfigV1Beta1DeprecatedStatus `json:"v1beta1,omitempty"`
}

// KubeadmConfigV1Beta1DeprecatedStatus is what goes with API version v1beta1.
type KubeadmConfigV1Beta1DeprecatedStatus struct {
	// conditions are those that clients of v1beta1 see.
	// +optional
	Conditions clusterv1.Conditions `json:"conditions,omitempty"`

	// failureReason is a short machine-readable reason of a terminal failure.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureReason string `json:"failureReason,omitempty"`

	// failureMessage explains failureReason to users.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	FailureMessage string `json:"failureMessage,omitempty"`
}

// KubeadmConfig generates the bootstrap data of a machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubeadmconfigs,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster to which this object belongs"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Data secret created",type="string",JSONPath=".status.initialization.dataSecretCreated",description="Whether the bootstrap data is stored"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type KubeadmConfig struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +optional
	Spec KubeadmConfigSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status KubeadmConfigStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the status.
func (c *KubeadmConfig) GetConditions() []metav1.Condition {
	return c.Status.Conditions
}

// SetConditions replaces the conditions of the status.
func (c *KubeadmConfig) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// GetV1Beta1Status returns the status that only v1beta1 has.
func (c *KubeadmConfig) GetV1Beta1Status() KubeadmConfigV1Beta1DeprecatedStatus {
	if c.Status.Deprecated == nil || c.Status.Deprecated.V1Beta1 == nil {
		return KubeadmConfigV1Beta1DeprecatedStatus{}
	}
	return *c.Status.Deprecated.V1Beta1
}

// SetV1Beta1Status replaces the status that only v1beta1 has, including its conditions.
func (c *KubeadmConfig) SetV1Beta1Status(status KubeadmConfigV1Beta1DeprecatedStatus) {
	if c.Status.Deprecated == nil && equality.Semantic.DeepEqual(status, KubeadmConfigV1Beta1DeprecatedStatus{}) {
		return
	}
	c.Status.Deprecated = &KubeadmConfigDeprecatedStatus{V1Beta1: &status}
}

// GetV1Beta1Conditions returns the conditions that clients of v1beta1 see.
func (c *KubeadmConfig) GetV1Beta1Conditions() clusterv1.Conditions {
	if c.Status.Deprecated == nil || c.Status.Deprecated.V1Beta1 == nil {
		return nil
	}
	return c.Status.Deprecated.V1Beta1.Conditions
}

// SetV1Beta1Conditions replaces the conditions that clients of v1beta1 see.
func (c *KubeadmConfig) SetV1Beta1Conditions(conditions clusterv1.Conditions) {
	if len(conditions) == 0 && len(c.GetV1Beta1Conditions()) == 0 {
		return
	}
	if c.Status.Deprecated == nil {
		c.Status.Deprecated = &KubeadmConfigDeprecatedStatus{}
	}
	if c.Status.Deprecated.V1Beta1 == nil {
		c.Status.Deprecated.V1Beta1 = &KubeadmConfigV1Beta1DeprecatedStatus{}
	}
	c.Status.Deprecated.V1Beta1.Conditions = conditions
}

// KubeadmConfigList is a list of KubeadmConfigs.
//
// +kubebuilder:object:root=true
type KubeadmConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubeadmConfig `json:"items"`
}
