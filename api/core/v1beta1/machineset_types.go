package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineSetDeletePolicy is which machines are deleted first when a MachineSet is scaled down. Machines that are being
// deleted, that have DeleteMachineAnnotation or that are unhealthy always come before others.
type MachineSetDeletePolicy string

const (
	// RandomMachineSetDeletePolicy has no preference among healthy machines. It is the default.
	RandomMachineSetDeletePolicy MachineSetDeletePolicy = "Random"
	// NewestMachineSetDeletePolicy deletes the youngest machines first.
	NewestMachineSetDeletePolicy MachineSetDeletePolicy = "Newest"
	// OldestMachineSetDeletePolicy deletes the oldest machines first.
	OldestMachineSetDeletePolicy MachineSetDeletePolicy = "Oldest"
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
	// MachineSetPreflightCheckControlPlaneIsStable requires that the control plane is neither provisioning nor upgrading.
	MachineSetPreflightCheckControlPlaneIsStable MachineSetPreflightCheck = "ControlPlaneIsStable"
)

// MachineSetSpec is the desired state of a set of machines.
type MachineSetSpec struct {
	// clusterName is the name of the Cluster this set belongs to, in the same namespace. Immutable.
	// +kubebuilder:validation:MinLength=1
	ClusterName string `json:"clusterName"`

	// replicas is the number of machines. When unset, 1, or a number within the autoscaler's bounds if the annotations
	// AutoscalerMinSizeAnnotation and AutoscalerMaxSizeAnnotation are both present.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// minReadySeconds is how many seconds a Node must be ready to count as available. When unset, 0.
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// deletePolicy is which machines are deleted first when the set is scaled down: Random, Newest or Oldest. When unset,
	// Random.
	// +optional
	// +kubebuilder:validation:Enum=Random;Newest;Oldest
	DeletePolicy string `json:"deletePolicy,omitempty"`

	// selector finds the machines of the set; it must match the labels of the template. When empty, the label
	// MachineSetNameLabel is added to both.
	Selector metav1.LabelSelector `json:"selector"`

	// template is the template of new machines.
	// +optional
	Template MachineTemplateSpec `json:"template,omitempty"`

	// machineNamingStrategy defines the names of new machines.
	// +optional
	MachineNamingStrategy *MachineNamingStrategy `json:"machineNamingStrategy,omitempty"`
}

// MachineSetStatus is the observed state of a set of machines.
type MachineSetStatus struct {
	// selector is spec.selector as text, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// replicas is the number of machines that the set owns and that are not being deleted.
	// +optional
	Replicas int32 `json:"replicas"`

	// fullyLabeledReplicas is how many of them have all labels of the template.
	// +optional
	FullyLabeledReplicas int32 `json:"fullyLabeledReplicas"`

	// readyReplicas is how many of them have a ready Node.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// availableReplicas is how many of them have a Node that has been ready for minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`

	// observedGeneration is the latest metadata.generation observed by the controller.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// failureReason is set after a failure that retries cannot fix; it is the class of the failure.
	// +optional
	FailureReason *MachineSetStatusError `json:"failureReason,omitempty"`

	// failureMessage explains failureReason to users.
	// +optional
	FailureMessage *string `json:"failureMessage,omitempty"`

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
	V1Beta2 *MachineSetV1Beta2Status `json:"v1beta2,omitempty"`
}

// MachineSetV1Beta2Status is the part of the status of a set of machines that v1beta2 added.
type MachineSetV1Beta2Status struct {
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
// +kubebuilder:resource:path=machinesets,shortName=ms,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.clusterName",description="Cluster the MachineSet belongs to"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=".spec.replicas",description="Machines asked for",priority=10
// +kubebuilder:printcolumn:name="Replicas",type="integer",JSONPath=".status.replicas",description="Machines there are, without those being deleted"
// +kubebuilder:printcolumn:name="Ready",type="integer",JSONPath=".status.readyReplicas",description="Machines with a ready Node"
// +kubebuilder:printcolumn:name="Available",type="integer",JSONPath=".status.availableReplicas",description="Machines whose Node has been ready for minReadySeconds"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.template.spec.version",description="Kubernetes version of new machines"

// MachineSet maintains a number of machines of one template.
type MachineSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MachineSetSpec   `json:"spec,omitempty"`
	Status MachineSetStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the MachineSet.
func (m *MachineSet) GetConditions() Conditions { return m.Status.Conditions }

// SetConditions replaces the conditions of the MachineSet.
func (m *MachineSet) SetConditions(conditions Conditions) { m.Status.Conditions = conditions }

// GetV1Beta2Conditions returns the conditions that v1beta2 shows.
func (m *MachineSet) GetV1Beta2Conditions() []metav1.Condition {
	if m.Status.V1Beta2 == nil {
		return nil
	}
	return m.Status.V1Beta2.Conditions
}

// SetV1Beta2Conditions replaces the conditions that v1beta2 shows.
func (m *MachineSet) SetV1Beta2Conditions(conditions []metav1.Condition) {
	if m.Status.V1Beta2 == nil {
		m.Status.V1Beta2 = &MachineSetV1Beta2Status{}
	}
	m.Status.V1Beta2.Conditions = conditions
}

// +kubebuilder:object:root=true

// MachineSetList is a list of MachineSets.
type MachineSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineSet `json:"items"`
}
