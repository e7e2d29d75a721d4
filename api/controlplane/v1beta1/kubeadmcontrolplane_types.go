package v1beta1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// KubeadmControlPlaneFinalizer blocks the deletion of a KubeadmControlPlane until its Machines are gone.
const KubeadmControlPlaneFinalizer = "kubeadm.controlplane.cluster.x-k8s.io"

// Annotations of KubeadmControlPlane and of its Machines.
const (
	// SkipCoreDNSAnnotation on a KubeadmControlPlane, whatever its value, disables the management of CoreDNS.
	SkipCoreDNSAnnotation = "controlplane.cluster.x-k8s.io/skip-coredns"

	// SkipKubeProxyAnnotation on a KubeadmControlPlane, whatever its value, disables the management of kube-proxy.
	SkipKubeProxyAnnotation = "controlplane.cluster.x-k8s.io/skip-kube-proxy"

	// KubeadmClusterConfigurationAnnotation on a Machine holds the JSON of the ClusterConfiguration with which the
	// Machine was created, or `null` if there was none. If it differs from the current one, the Machine is rolled out.
	KubeadmClusterConfigurationAnnotation = "controlplane.cluster.x-k8s.io/kubeadm-cluster-configuration"

	// PreTerminateHookCleanupAnnotation on a Machine of a KubeadmControlPlane blocks its deletion, after its Node is
	// drained and before its infrastructure is deleted, until its etcd member is removed. The control plane sets and
	// removes it. Its name has the prefix of pre-terminate hooks.
	PreTerminateHookCleanupAnnotation = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup"

	// RemediationInProgressAnnotation on a KubeadmControlPlane records, from the deletion of an unhealthy Machine until the
	// creation of its replacement, what is being remediated. Its value is the JSON of a LastRemediationStatus.
	RemediationInProgressAnnotation = "controlplane.cluster.x-k8s.io/remediation-in-progress"

	// RemediationForAnnotation on a Machine marks it as the replacement of an unhealthy one. Its value is the JSON of a
	// LastRemediationStatus.
	RemediationForAnnotation = "controlplane.cluster.x-k8s.io/remediation-for"
)

// DefaultMinHealthyPeriod is how long a replacement must stay healthy before another failure counts as a new problem
// instead of a retry, unless the remediation strategy sets it.
const DefaultMinHealthyPeriod = time.Hour

// RolloutStrategyType is a strategy to replace outdated Machines.
type RolloutStrategyType string

// RollingUpdateStrategyType replaces Machines one by one; it is the only strategy and the default.
const RollingUpdateStrategyType RolloutStrategyType = "RollingUpdate"

// KubeadmControlPlaneStatusError is a terminal failure of a control plane.
type KubeadmControlPlaneStatusError string

// Terminal failures.
const (
	// InvalidConfigurationKubeadmControlPlaneError: the spec is invalid.
	InvalidConfigurationKubeadmControlPlaneError KubeadmControlPlaneStatusError = "InvalidConfiguration"

	// UnsupportedChangeKubeadmControlPlaneError: the spec was changed in an unsupported way.
	UnsupportedChangeKubeadmControlPlaneError KubeadmControlPlaneStatusError = "UnsupportedChange"

	// CreateKubeadmControlPlaneError: a Machine permanently could not be created.
	CreateKubeadmControlPlaneError KubeadmControlPlaneStatusError = "CreateError"

	// UpdateKubeadmControlPlaneError: a Machine permanently could not be updated.
	UpdateKubeadmControlPlaneError KubeadmControlPlaneStatusError = "UpdateError"

	// DeleteKubeadmControlPlaneError: a Machine permanently could not be deleted.
	DeleteKubeadmControlPlaneError KubeadmControlPlaneStatusError = "DeleteError"
)

// KubeadmControlPlaneSpec is the desired state of a control plane.
type KubeadmControlPlaneSpec struct {
	// replicas is the number of control plane Machines, 1 when unset. With etcd on the Machines it must be odd. It must
	// not be zero.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// version of Kubernetes, as a semantic version with a leading v.
	Version string `json:"version"`

	// machineTemplate is the template of Machines.
	MachineTemplate KubeadmControlPlaneMachineTemplate `json:"machineTemplate"`

	// kubeadmConfigSpec is how Machines are initialized and joined.
	KubeadmConfigSpec bootstrapv1.KubeadmConfigSpec `json:"kubeadmConfigSpec"`

	// rolloutBefore replaces Machines ahead of a deadline.
	// +optional
	RolloutBefore *RolloutBefore `json:"rolloutBefore,omitempty"`

	// rolloutAfter replaces, after this time, the Machines created before it.
	// +optional
	RolloutAfter *metav1.Time `json:"rolloutAfter,omitempty"`

	// rolloutStrategy is how outdated Machines are replaced.
	// +optional
	// +kubebuilder:default={type: "RollingUpdate", rollingUpdate: {maxSurge: 1}}
	RolloutStrategy *RolloutStrategy `json:"rolloutStrategy,omitempty"`

	// remediationStrategy limits how unhealthy Machines are replaced.
	// +optional
	RemediationStrategy *RemediationStrategy `json:"remediationStrategy,omitempty"`

	// machineNamingStrategy defines the names of new Machines.
	// +optional
	MachineNamingStrategy *MachineNamingStrategy `json:"machineNamingStrategy,omitempty"`
}

// MachineNamingStrategy defines the names of new Machines.
type MachineNamingStrategy struct {
	// template is a Go text template of the name. It can use .cluster.name, .kubeadmControlPlane.name and .random, five random
	// characters, which it must contain. A name longer than 63 characters is truncated to 58, and five random ones are appended.
	// When unset, "{{ .kubeadmControlPlane.name }}-{{ .random }}".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Template string `json:"template,omitempty"`
}

// KubeadmControlPlaneMachineTemplate is the template of the Machines of a control plane.
type KubeadmControlPlaneMachineTemplate struct {
	// metadata holds the labels and annotations of every Machine, its infrastructure and its KubeadmConfig.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty"`

	// infrastructureRef references the provider's template from which the Machines' infrastructure is cloned.
	InfrastructureRef corev1.ObjectReference `json:"infrastructureRef"`

	// readinessGates are further conditions of a Machine that must be healthy for it to be ready, besides those of control
	// plane components and etcd.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=conditionType
	ReadinessGates []clusterv1.MachineReadinessGate `json:"readinessGates,omitempty"`

	// nodeDrainTimeout limits how long a Node is drained before its Machine is deleted anyway; zero or unset means no
	// limit.
	// +optional
	NodeDrainTimeout *metav1.Duration `json:"nodeDrainTimeout,omitempty"`

	// nodeVolumeDetachTimeout limits how long deletion waits for volumes to be detached; zero or unset means no limit.
	// +optional
	NodeVolumeDetachTimeout *metav1.Duration `json:"nodeVolumeDetachTimeout,omitempty"`

	// nodeDeletionTimeout limits how long deletion of the Node is retried, 10 seconds when unset; zero means no limit.
	// +optional
	NodeDeletionTimeout *metav1.Duration `json:"nodeDeletionTimeout,omitempty"`

	// taints are set on the Nodes. Changed in place. Requires the feature gate MachineTaintPropagation.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	Taints []clusterv1.MachineTaint `json:"taints,omitempty"`
}

// RolloutBefore replaces Machines ahead of a deadline.
type RolloutBefore struct {
	// certificatesExpiryDays replaces a Machine when its certificates expire within this number of days; at least 7.
	// +optional
	CertificatesExpiryDays *int32 `json:"certificatesExpiryDays,omitempty"`
}

// RolloutStrategy is how outdated Machines are replaced.
type RolloutStrategy struct {
	// type of the strategy; RollingUpdate is the only one.
	// +optional
	Type RolloutStrategyType `json:"type,omitempty"`

	// rollingUpdate tunes the strategy RollingUpdate.
	// +optional
	RollingUpdate *RollingUpdate `json:"rollingUpdate,omitempty"`
}

// RollingUpdate tunes the strategy RollingUpdate.
type RollingUpdate struct {
	// maxSurge is how many Machines may exist in addition to replicas: 1, the default, or 0, which requires at least
	// three replicas.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
}

// RemediationStrategy limits how unhealthy Machines are replaced.
type RemediationStrategy struct {
	// maxRetry is how often the replacement of one Machine is itself replaced when it fails too; unlimited when unset.
	// +optional
	MaxRetry *int32 `json:"maxRetry,omitempty"`

	// retryPeriod is the minimum time between two retries, none when unset.
	// +optional
	RetryPeriod metav1.Duration `json:"retryPeriod,omitempty"`

	// minHealthyPeriod is how long a replacement must stay healthy before its failure counts as a new problem instead of
	// a retry, one hour when unset.
	// +optional
	MinHealthyPeriod *metav1.Duration `json:"minHealthyPeriod,omitempty"`
}

// KubeadmControlPlaneStatus is the observed state of a control plane.
type KubeadmControlPlaneStatus struct {
	// selector finds the control plane Machines, in the text form of a label selector; the scale subresource serves it.
	// +optional
	Selector string `json:"selector,omitempty"`

	// replicas is the number of existing Machines. Machines that are being deleted count, so that scaling down is visible
	// until they are gone.
	// +optional
	Replicas int32 `json:"replicas"`

	// version is the lowest Kubernetes version among the Machines with a healthy API server.
	// +optional
	Version *string `json:"version,omitempty"`

	// updatedReplicas is the number of Machines that match the spec and are not being deleted.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// readyReplicas is the number of Machines whose Node is ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// unavailableReplicas is replicas minus readyReplicas.
	// +optional
	UnavailableReplicas int32 `json:"unavailableReplicas"`

	// initialized is true once `kubeadm init` completed on the first Machine; it stays true.
	// +optional
	Initialized bool `json:"initialized"`

	// ready is true while the API server can serve requests.
	// +optional
	Ready bool `json:"ready"`

	// failureReason is the reason of a terminal failure, which requires intervention.
	// +optional
	FailureReason KubeadmControlPlaneStatusError `json:"failureReason,omitempty"`

	// failureMessage explains failureReason.
	// +optional
	FailureMessage *string `json:"failureMessage,omitempty"`

	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the current conditions.
	// +optional
	Conditions clusterv1.Conditions `json:"conditions,omitempty"`

	// lastRemediation is the latest replacement of an unhealthy Machine.
	// +optional
	LastRemediation *LastRemediationStatus `json:"lastRemediation,omitempty"`

	// versions is how many machines have which Kubernetes version, in ascending order.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=version
	Versions []clusterv1.StatusVersion `json:"versions,omitempty"`

	// v1beta2 is the part of the status that v1beta2 added, at the same paths below .status.
	// +optional
	V1Beta2 *KubeadmControlPlaneV1Beta2Status `json:"v1beta2,omitempty"`
}

// KubeadmControlPlaneV1Beta2Status is the part of the status of a control plane that v1beta2 added.
type KubeadmControlPlaneV1Beta2Status struct {
	// conditions are the current conditions, with the types and reasons of v1beta2.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// readyReplicas is how many Machines have the condition Ready.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// availableReplicas is how many Machines have the condition Available.
	// +optional
	AvailableReplicas *int32 `json:"availableReplicas,omitempty"`

	// upToDateReplicas is how many Machines have the condition UpToDate.
	// +optional
	UpToDateReplicas *int32 `json:"upToDateReplicas,omitempty"`
}

// LastRemediationStatus records the replacement of an unhealthy Machine.
type LastRemediationStatus struct {
	// machine is the name of the Machine that was replaced.
	Machine string `json:"machine"`

	// timestamp is when its replacement began.
	Timestamp metav1.Time `json:"timestamp"`

	// retryCount is how many replacements in a row preceded this one.
	RetryCount int32 `json:"retryCount"`
}

// KubeadmControlPlane manages the control plane Machines of a Cluster with kubeadm.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubeadmcontrolplanes,shortName=kcp,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster to which this object belongs"
// +kubebuilder:printcolumn:name="Initialized",type=boolean,JSONPath=".status.initialized",description="Whether kubeadm init completed on the first Machine"
// +kubebuilder:printcolumn:name="API Server Available",type=boolean,JSONPath=".status.ready",description="Whether the API server takes requests"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=".spec.replicas",description="Number of Machines asked for",priority=10
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=".status.replicas",description="Number of Machines, those being deleted included"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=".status.readyReplicas",description="Number of Machines whose Node is ready"
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=".status.updatedReplicas",description="Number of Machines that match the spec and are not being deleted"
// +kubebuilder:printcolumn:name="Unavailable",type=integer,JSONPath=".status.unavailableReplicas",description="Number of Machines whose Node is not ready"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=".spec.version",description="Kubernetes version asked for"
type KubeadmControlPlane struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   KubeadmControlPlaneSpec   `json:"spec,omitempty"`
	Status KubeadmControlPlaneStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (k *KubeadmControlPlane) GetConditions() clusterv1.Conditions {
	return k.Status.Conditions
}

// SetConditions replaces the conditions of the status.
func (k *KubeadmControlPlane) SetConditions(conditions clusterv1.Conditions) {
	k.Status.Conditions = conditions
}

// GetV1Beta2Conditions returns the conditions that v1beta2 shows.
func (k *KubeadmControlPlane) GetV1Beta2Conditions() []metav1.Condition {
	if k.Status.V1Beta2 == nil {
		return nil
	}
	return k.Status.V1Beta2.Conditions
}

// SetV1Beta2Conditions replaces the conditions that v1beta2 shows.
func (k *KubeadmControlPlane) SetV1Beta2Conditions(conditions []metav1.Condition) {
	if k.Status.V1Beta2 == nil {
		k.Status.V1Beta2 = &KubeadmControlPlaneV1Beta2Status{}
	}
	k.Status.V1Beta2.Conditions = conditions
}

// KubeadmControlPlaneList is a list of KubeadmControlPlanes.
//
// +kubebuilder:object:root=true
type KubeadmControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubeadmControlPlane `json:"items"`
}
