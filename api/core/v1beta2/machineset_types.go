package v1beta2

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// MachineSetFinalizer blocks the deletion of a MachineSet until its machines are gone.
	MachineSetFinalizer = "cluster.x-k8s.io/machineset"

	// MachineSetTopologyFinalizer blocks the deletion of a MachineSet of a topology until the templates that only it uses are
	// deleted.
	MachineSetTopologyFinalizer = "machineset.topology.cluster.x-k8s.io"
)

// MachineSetDeletionOrder is which machines are deleted first when a MachineSet is scaled down. Machines that are being
// deleted, that have DeleteMachineAnnotation, that are being updated in place or that are unhealthy always come before
// others, in this order.
// +kubebuilder:validation:Enum=Random;Newest;Oldest
type MachineSetDeletionOrder string

const (
	// RandomMachineSetDeletionOrder has no preference among healthy machines. It is the default.
	RandomMachineSetDeletionOrder MachineSetDeletionOrder = "Random"
	// NewestMachineSetDeletionOrder deletes the youngest machines first.
	NewestMachineSetDeletionOrder MachineSetDeletionOrder = "Newest"
	// OldestMachineSetDeletionOrder deletes the oldest machines first.
	OldestMachineSetDeletionOrder MachineSetDeletionOrder = "Oldest"
)

// MachineSetPreflightCheck is a check that must pass before a MachineSet creates a machine.
type MachineSetPreflightCheck string

const (
	// MachineSetPreflightCheckAll stands for all checks, in MachineSetSkipPreflightChecksAnnotation.
	MachineSetPreflightCheckAll MachineSetPreflightCheck = "All"
	// MachineSetPreflightCheckKubeadmVersionSkew requires machines bootstrapped by kubeadm to have the minor version of
	// the control plane.
	MachineSetPreflightCheckKubeadmVersionSkew MachineSetPreflightCheck = "KubeadmVersionSkew"
	// MachineSetPreflightCheckKubernetesVersionSkew requires machines within the version skew that Kubernetes supports
	// between kubelet and API server.
	MachineSetPreflightCheckKubernetesVersionSkew MachineSetPreflightCheck = "KubernetesVersionSkew"
	// MachineSetPreflightCheckControlPlaneIsStable requires that the control plane is neither provisioning nor upgrading, and that
	// no upgrade of the topology is pending.
	MachineSetPreflightCheckControlPlaneIsStable MachineSetPreflightCheck = "ControlPlaneIsStable"
	// MachineSetPreflightCheckControlPlaneVersionSkew requires machines of a topology to have the version of the control plane.
	MachineSetPreflightCheckControlPlaneVersionSkew MachineSetPreflightCheck = "ControlPlaneVersionSkew"
)

// MachineSetSpec is the desired state of a set of machines.
type MachineSetSpec struct {
	// clusterName is the name of the Cluster this set belongs to, in the same namespace. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`

	// replicas is the number of machines. When unset, 1, or a number within the autoscaler's bounds if the annotations
	// AutoscalerMinSizeAnnotation and AutoscalerMaxSizeAnnotation are both present.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// selector finds the machines of the set; it must match the labels of the template. When empty, the label
	// MachineSetNameLabel is added to both.
	// +required
	Selector metav1.LabelSelector `json:"selector,omitempty,omitzero"`

	// template is the template of new machines.
	// +required
	Template MachineTemplateSpec `json:"template,omitempty,omitzero"`

	// machineNaming defines the names of new machines.
	// +optional
	MachineNaming MachineNamingSpec `json:"machineNaming,omitempty,omitzero"`

	// deletion is which machines are deleted when the set is scaled down.
	// +optional
	Deletion MachineSetDeletionSpec `json:"deletion,omitempty,omitzero"`
}

// MachineSetDeletionSpec is which machines are deleted when a MachineSet is scaled down.
// +kubebuilder:validation:MinProperties=1
type MachineSetDeletionSpec struct {
	// order is which machines are deleted first: Random, Newest or Oldest. When unset, Random.
	// +optional
	Order MachineSetDeletionOrder `json:"order,omitempty"`
}

// MachineSetStatus is the observed state of a set of machines.
// +kubebuilder:validation:MinProperties=1
type MachineSetStatus struct {
	// conditions are the current conditions: MachinesReady, MachinesUpToDate, ScalingUp, ScalingDown, Remediating, Deleting
	// and Paused.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// selector is spec.selector as text, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Selector string `json:"selector,omitempty"`

	// replicas is the number of machines that the set owns.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// readyReplicas is how many of them have the condition Ready.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// availableReplicas is how many of them have the condition Available.
	// +optional
	AvailableReplicas *int32 `json:"availableReplicas,omitempty"`

	// upToDateReplicas is how many of them have the condition UpToDate.
	// +optional
	UpToDateReplicas *int32 `json:"upToDateReplicas,omitempty"`

	// versions is how many machines have which Kubernetes version, in ascending order.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=version
	Versions []StatusVersion `json:"versions,omitempty"`

	// observedGeneration is the latest metadata.generation observed by the controller.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// deprecated groups what an older API version shows, and controllers no longer use.
	// +optional
	Deprecated *MachineSetDeprecatedStatus `json:"deprecated,omitempty"`
}

// MachineSetDeprecatedStatus groups what an older API version shows, and controllers no longer use.
type MachineSetDeprecatedStatus struct {
	// v1beta1 is the status that only v1beta1 has. It is removed together with that version.
	// +optional
	V1Beta1 *MachineSetV1Beta1DeprecatedStatus `json:"v1beta1,omitempty"`
}

// MachineSetV1Beta1DeprecatedStatus is the status that only v1beta1 has.
type MachineSetV1Beta1DeprecatedStatus struct {
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

	// fullyLabeledReplicas is how many machines have all labels of the template.
	// +optional
	FullyLabeledReplicas *int32 `json:"fullyLabeledReplicas,omitempty"`

	// readyReplicas is how many machines have a ready Node.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// availableReplicas is how many machines have a Node that has been ready for minReadySeconds.
	// +optional
	AvailableReplicas *int32 `json:"availableReplicas,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=machinesets,shortName=ms,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.clusterName",description="Cluster the MachineSet belongs to"
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".spec.replicas",description="Desired number of machines"
// +kubebuilder:printcolumn:name="Current",type="integer",JSONPath=".status.replicas",description="Number of machines"
// +kubebuilder:printcolumn:name="Ready",type="integer",JSONPath=".status.readyReplicas",description="Number of machines whose condition Ready is True"
// +kubebuilder:printcolumn:name="Available",type="integer",JSONPath=".status.availableReplicas",description="Number of machines whose condition Available is True"
// +kubebuilder:printcolumn:name="Up-to-date",type="integer",JSONPath=".status.upToDateReplicas",description="Number of machines whose condition UpToDate is True"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether the MachineSet is paused",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.template.spec.version",description="Kubernetes version of new machines"

// MachineSet maintains a number of machines of one template.
type MachineSet struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of objects.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec MachineSetSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status MachineSetStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the MachineSet.
func (m *MachineSet) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions replaces the conditions of the MachineSet.
func (m *MachineSet) SetConditions(conditions []metav1.Condition) { m.Status.Conditions = conditions }

// GetV1Beta1Status returns the status that only v1beta1 has.
func (m *MachineSet) GetV1Beta1Status() MachineSetV1Beta1DeprecatedStatus {
	if m.Status.Deprecated == nil || m.Status.Deprecated.V1Beta1 == nil {
		return MachineSetV1Beta1DeprecatedStatus{}
	}
	return *m.Status.Deprecated.V1Beta1
}

// SetV1Beta1Status replaces the status that only v1beta1 has, including its conditions.
func (m *MachineSet) SetV1Beta1Status(status MachineSetV1Beta1DeprecatedStatus) {
	if m.Status.Deprecated == nil && equality.Semantic.DeepEqual(status, MachineSetV1Beta1DeprecatedStatus{}) {
		return
	}
	m.Status.Deprecated = &MachineSetDeprecatedStatus{V1Beta1: &status}
}

// GetV1Beta1Conditions returns the conditions that v1beta1 shows.
func (m *MachineSet) GetV1Beta1Conditions() Conditions {
	if m.Status.Deprecated == nil || m.Status.Deprecated.V1Beta1 == nil {
		return nil
	}
	return m.Status.Deprecated.V1Beta1.Conditions
}

// SetV1Beta1Conditions replaces the conditions that v1beta1 shows.
func (m *MachineSet) SetV1Beta1Conditions(conditions Conditions) {
	if len(conditions) == 0 && len(m.GetV1Beta1Conditions()) == 0 {
		return
	}
	if m.Status.Deprecated == nil {
		m.Status.Deprecated = &MachineSetDeprecatedStatus{}
	}
	if m.Status.Deprecated.V1Beta1 == nil {
		m.Status.Deprecated.V1Beta1 = &MachineSetV1Beta1DeprecatedStatus{}
	}
	m.Status.Deprecated.V1Beta1.Conditions = conditions
}

// +kubebuilder:object:root=true

// MachineSetList is a list of MachineSets.
type MachineSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineSet `json:"items"`
}
