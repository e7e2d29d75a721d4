package v1beta2

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// KubeadmControlPlaneFinalizer blocks the deletion of a KubeadmControlPlane until its Machines are gone.
const KubeadmControlPlaneFinalizer = "kubeadm.controlplane.cluster.x-k8s.io"

// Annotations of KubeadmControlPlane and of its Machines.
const (
	// SkipCoreDNSAnnotation on a KubeadmControlPlane, whatever its value, disables the management of CoreDNS.
	SkipCoreDNSAnnotation = "controlplane.cluster.x-k8s.io/skip-coredns"

	// SkipKubeProxyAnnotation on a KubeadmControlPlane, whatever its value, disables the management of kube-proxy.
	SkipKubeProxyAnnotation = "controlplane.cluster.x-k8s.io/skip-kube-proxy"

	// PreTerminateHookCleanupAnnotation on a Machine of a KubeadmControlPlane blocks its deletion, after its Node is
	// drained and before its infrastructure is deleted, until its etcd member is removed. The control plane sets and
	// removes it. Its name has the prefix of pre-terminate hooks.
	PreTerminateHookCleanupAnnotation = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup"

	// AllowQuorumLossAnnotation on a control plane Machine allows users to delete it although etcd could lose its quorum. Presence counts,
	// whatever the value.
	AllowQuorumLossAnnotation = "controlplane.cluster.x-k8s.io/allow-quorum-loss"

	// RemediationInProgressAnnotation on a KubeadmControlPlane records, from the deletion of an unhealthy Machine until the
	// creation of its replacement, what is being remediated. Its value is the JSON of a LastRemediationStatus.
	RemediationInProgressAnnotation = "controlplane.cluster.x-k8s.io/remediation-in-progress"

	// RemediationForAnnotation on a Machine marks it as the replacement of an unhealthy one. Its value is the JSON of a
	// LastRemediationStatus.
	RemediationForAnnotation = "controlplane.cluster.x-k8s.io/remediation-for"
)

// DefaultMinHealthyPeriodSeconds is for how many seconds a replacement must stay healthy before another failure counts as a
// new problem instead of a retry, unless remediation sets it.
const DefaultMinHealthyPeriodSeconds = int32(time.Hour / time.Second)

// KubeadmControlPlaneRolloutStrategyType is a strategy to replace outdated Machines.
// +kubebuilder:validation:Enum=RollingUpdate
type KubeadmControlPlaneRolloutStrategyType string

// RollingUpdateStrategyType replaces Machines one by one; it is the only strategy and the default.
const RollingUpdateStrategyType KubeadmControlPlaneRolloutStrategyType = "RollingUpdate"

// KubeadmControlPlaneSpec is the desired state of a control plane.
type KubeadmControlPlaneSpec struct {
	// replicas is the number of control plane Machines, 1 when unset. With etcd on the Machines it must be odd. It must
	// not be zero.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// version of Kubernetes, as a semantic version with a leading v.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// machineTemplate is the template of Machines.
	// +required
	MachineTemplate KubeadmControlPlaneMachineTemplate `json:"machineTemplate,omitempty,omitzero"`

	// kubeadmConfigSpec is how Machines are initialized and joined.
	// +optional
	KubeadmConfigSpec bootstrapv1.KubeadmConfigSpec `json:"kubeadmConfigSpec,omitempty,omitzero"`

	// rollout is when and how Machines are replaced.
	// +optional
	Rollout KubeadmControlPlaneRolloutSpec `json:"rollout,omitempty,omitzero"`

	// remediation limits how unhealthy Machines are replaced.
	// +optional
	Remediation KubeadmControlPlaneRemediationSpec `json:"remediation,omitempty,omitzero"`

	// machineNaming defines the names of new Machines.
	// +optional
	MachineNaming MachineNamingSpec `json:"machineNaming,omitempty,omitzero"`
}

// KubeadmControlPlaneMachineTemplate is the template of the Machines of a control plane.
type KubeadmControlPlaneMachineTemplate struct {
	// metadata holds the labels and annotations of every Machine, its infrastructure and its KubeadmConfig.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of every Machine.
	// +required
	Spec KubeadmControlPlaneMachineTemplateSpec `json:"spec,omitempty,omitzero"`
}

// KubeadmControlPlaneMachineTemplateSpec is what a control plane can set of the spec of every Machine.
type KubeadmControlPlaneMachineTemplateSpec struct {
	// infrastructureRef references the provider's template from which the Machines' infrastructure is cloned.
	// +required
	InfrastructureRef clusterv1.ContractVersionedObjectReference `json:"infrastructureRef,omitempty,omitzero"`

	// readinessGates are further conditions of a Machine that must be healthy for it to be ready, besides those of control
	// plane components and etcd, which are always added.
	// +listType=map
	// +listMapKey=conditionType
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +optional
	ReadinessGates []clusterv1.MachineReadinessGate `json:"readinessGates,omitempty"`

	// deletion limits the steps of deleting a Machine.
	// +optional
	Deletion clusterv1.MachineDeletionSpec `json:"deletion,omitempty,omitzero"`

	// taints are set on every Node. Taints that other clients set on it are kept. Changed in place. Requires the feature gate
	// MachineTaintPropagation.
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Taints []clusterv1.MachineTaint `json:"taints,omitempty"`
}

// KubeadmControlPlaneRolloutSpec is when and how Machines are replaced.
// +kubebuilder:validation:MinProperties=1
type KubeadmControlPlaneRolloutSpec struct {
	// before replaces Machines ahead of a deadline.
	// +optional
	Before KubeadmControlPlaneRolloutBeforeSpec `json:"before,omitempty,omitzero"`

	// after replaces, after this time, the Machines created before it.
	// +optional
	After metav1.Time `json:"after,omitempty,omitzero"`

	// strategy is how outdated Machines are replaced.
	// +optional
	Strategy KubeadmControlPlaneRolloutStrategy `json:"strategy,omitempty,omitzero"`
}

// KubeadmControlPlaneRolloutBeforeSpec replaces Machines ahead of a deadline.
// +kubebuilder:validation:MinProperties=1
type KubeadmControlPlaneRolloutBeforeSpec struct {
	// certificatesExpiryDays replaces a Machine when its certificates expire within this number of days; at least 7, and
	// fewer than they are valid.
	// +optional
	// +kubebuilder:validation:Minimum=7
	CertificatesExpiryDays int32 `json:"certificatesExpiryDays,omitempty"`
}

// KubeadmControlPlaneRolloutStrategy is how outdated Machines are replaced.
// +kubebuilder:validation:MinProperties=1
type KubeadmControlPlaneRolloutStrategy struct {
	// type of the strategy; RollingUpdate is the only one.
	// +required
	Type KubeadmControlPlaneRolloutStrategyType `json:"type,omitempty"`

	// rollingUpdate tunes the strategy RollingUpdate.
	// +optional
	RollingUpdate KubeadmControlPlaneRolloutStrategyRollingUpdate `json:"rollingUpdate,omitempty,omitzero"`
}

// KubeadmControlPlaneRolloutStrategyRollingUpdate tunes the strategy RollingUpdate.
// +kubebuilder:validation:MinProperties=1
type KubeadmControlPlaneRolloutStrategyRollingUpdate struct {
	// maxSurge is how many Machines may exist in addition to replicas: 1, the default, or 0, which requires at least
	// three replicas.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
}

// KubeadmControlPlaneRemediationSpec limits how unhealthy Machines are replaced.
// +kubebuilder:validation:MinProperties=1
type KubeadmControlPlaneRemediationSpec struct {
	// maxRetry is how often the replacement of one Machine is itself replaced when it fails too; unlimited when unset.
	// +optional
	MaxRetry *int32 `json:"maxRetry,omitempty"`

	// retryPeriodSeconds is the minimum time between two retries, in seconds, none when unset.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RetryPeriodSeconds *int32 `json:"retryPeriodSeconds,omitempty"`

	// minHealthyPeriodSeconds is for how many seconds a replacement must stay healthy before its failure counts as a new
	// problem instead of a retry, 3600 when unset.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinHealthyPeriodSeconds *int32 `json:"minHealthyPeriodSeconds,omitempty"`
}

// MachineNamingSpec defines the names of new Machines.
// +kubebuilder:validation:MinProperties=1
type MachineNamingSpec struct {
	// template is a Go text template of the name. It can use .cluster.name, .kubeadmControlPlane.name and .random, five
	// random characters, which it must contain. A name longer than 63 characters is truncated to 58, and five random ones are
	// appended. When unset, "{{ .kubeadmControlPlane.name }}-{{ .random }}".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Template string `json:"template,omitempty"`
}

// KubeadmControlPlaneStatus is the observed state of a control plane.
// +kubebuilder:validation:MinProperties=1
type KubeadmControlPlaneStatus struct {
	// conditions are the current conditions: Available, Initialized, CertificatesAvailable, EtcdClusterHealthy,
	// ControlPlaneComponentsHealthy, MachinesReady, MachinesUpToDate, RollingOut, ScalingUp, ScalingDown, Remediating, Deleting,
	// Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is what was achieved once; controllers rely on it, conditions are for users.
	// +optional
	Initialization KubeadmControlPlaneInitializationStatus `json:"initialization,omitempty,omitzero"`

	// selector finds the control plane Machines, in the text form of a label selector; the scale subresource serves it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Selector string `json:"selector,omitempty"`

	// replicas is the number of existing Machines. Machines that are being deleted count, so that scaling down is visible
	// until they are gone.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// readyReplicas is the number of Machines whose condition Ready is true.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// availableReplicas is the number of Machines whose condition Available is true.
	// +optional
	AvailableReplicas *int32 `json:"availableReplicas,omitempty"`

	// upToDateReplicas is the number of Machines whose condition UpToDate is true.
	// +optional
	UpToDateReplicas *int32 `json:"upToDateReplicas,omitempty"`

	// versions are the Kubernetes versions of the Machines, with the number of Machines of each, in ascending order.
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Versions []clusterv1.StatusVersion `json:"versions,omitempty"`

	// version is the lowest Kubernetes version among the Machines with a healthy API server. Deprecated: use versions.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastRemediation is the latest replacement of an unhealthy Machine.
	// +optional
	LastRemediation LastRemediationStatus `json:"lastRemediation,omitempty,omitzero"`

	// deprecated groups what goes with API version v1beta1.
	// +optional
	Deprecated *KubeadmControlPlaneDeprecatedStatus `json:"deprecated,omitempty"`
}

// KubeadmControlPlaneInitializationStatus is what was achieved once, and stays so.
// +kubebuilder:validation:MinProperties=1
type KubeadmControlPlaneInitializationStatus struct {
	// controlPlaneInitialized is true once `kubeadm init` completed on the first Machine, so that the API server can be
	// reached.
	// +optional
	ControlPlaneInitialized *bool `json:"controlPlaneInitialized,omitempty"`
}

// KubeadmControlPlaneDeprecatedStatus groups what goes with old API versions.
type KubeadmControlPlaneDeprecatedStatus struct {
	// v1beta1 is what goes with API version v1beta1.
	// +optional
	V1Beta1 *KubeadmControlPlaneV1Beta1DeprecatedStatus `json:"v1beta1,omitempty"`
}

// KubeadmControlPlaneV1Beta1DeprecatedStatus is what goes with API version v1beta1.
type KubeadmControlPlaneV1Beta1DeprecatedStatus struct {
	// conditions are those that clients of v1beta1 see.
	// +optional
	Conditions clusterv1.Conditions `json:"conditions,omitempty"`

	// failureReason is the reason of a terminal failure, which requires intervention.
	// +optional
	FailureReason string `json:"failureReason,omitempty"`

	// failureMessage explains failureReason.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	FailureMessage *string `json:"failureMessage,omitempty"`

	// updatedReplicas is the number of Machines that match the spec and are not being deleted.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// readyReplicas is the number of Machines whose Node is ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// unavailableReplicas is replicas minus readyReplicas.
	// +optional
	UnavailableReplicas int32 `json:"unavailableReplicas"`
}

// LastRemediationStatus records the replacement of an unhealthy Machine.
type LastRemediationStatus struct {
	// machine is the name of the Machine that was replaced.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Machine string `json:"machine,omitempty"`

	// time is when its replacement began.
	// +required
	Time metav1.Time `json:"time,omitempty,omitzero"`

	// retryCount is how many replacements in a row preceded this one.
	// +required
	// +kubebuilder:validation:Minimum=0
	RetryCount *int32 `json:"retryCount,omitempty"`
}

// KubeadmControlPlane manages the control plane Machines of a Cluster with kubeadm.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubeadmcontrolplanes,shortName=kcp,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster to which this object belongs"
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="Whether the control plane is available"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=".spec.replicas",description="Number of Machines asked for"
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=".status.replicas",description="Number of Machines, those being deleted included"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=".status.readyReplicas",description="Number of Machines that are ready"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=".status.availableReplicas",description="Number of Machines that are available"
// +kubebuilder:printcolumn:name="Up-to-date",type=integer,JSONPath=".status.upToDateReplicas",description="Number of Machines that match the spec"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Initialized",type=boolean,JSONPath=".status.initialization.controlPlaneInitialized",description="Whether kubeadm init completed on the first Machine"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=".spec.version",description="Kubernetes version asked for"
type KubeadmControlPlane struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +required
	Spec KubeadmControlPlaneSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status KubeadmControlPlaneStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the status.
func (k *KubeadmControlPlane) GetConditions() []metav1.Condition {
	return k.Status.Conditions
}

// SetConditions replaces the conditions of the status.
func (k *KubeadmControlPlane) SetConditions(conditions []metav1.Condition) {
	k.Status.Conditions = conditions
}

// GetV1Beta1Status returns the status that only v1beta1 has.
func (k *KubeadmControlPlane) GetV1Beta1Status() KubeadmControlPlaneV1Beta1DeprecatedStatus {
	if k.Status.Deprecated == nil || k.Status.Deprecated.V1Beta1 == nil {
		return KubeadmControlPlaneV1Beta1DeprecatedStatus{}
	}
	return *k.Status.Deprecated.V1Beta1
}

// SetV1Beta1Status replaces the status that only v1beta1 has, including its conditions.
func (k *KubeadmControlPlane) SetV1Beta1Status(status KubeadmControlPlaneV1Beta1DeprecatedStatus) {
	if k.Status.Deprecated == nil && equality.Semantic.DeepEqual(status, KubeadmControlPlaneV1Beta1DeprecatedStatus{}) {
		return
	}
	k.Status.Deprecated = &KubeadmControlPlaneDeprecatedStatus{V1Beta1: &status}
}

// GetV1Beta1Conditions returns the conditions that clients of v1beta1 see.
func (k *KubeadmControlPlane) GetV1Beta1Conditions() clusterv1.Conditions {
	if k.Status.Deprecated == nil || k.Status.Deprecated.V1Beta1 == nil {
		return nil
	}
	return k.Status.Deprecated.V1Beta1.Conditions
}

// SetV1Beta1Conditions replaces the conditions that clients of v1beta1 see.
func (k *KubeadmControlPlane) SetV1Beta1Conditions(conditions clusterv1.Conditions) {
	if len(conditions) == 0 && len(k.GetV1Beta1Conditions()) == 0 {
		return
	}
	if k.Status.Deprecated == nil {
		k.Status.Deprecated = &KubeadmControlPlaneDeprecatedStatus{}
	}
	if k.Status.Deprecated.V1Beta1 == nil {
		k.Status.Deprecated.V1Beta1 = &KubeadmControlPlaneV1Beta1DeprecatedStatus{}
	}
	k.Status.Deprecated.V1Beta1.Conditions = conditions
}

// KubeadmControlPlaneList is a list of KubeadmControlPlanes.
//
// +kubebuilder:object:root=true
type KubeadmControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubeadmControlPlane `json:"items"`
}
