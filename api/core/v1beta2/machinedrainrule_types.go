package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineDrainRuleDrainBehavior is what happens to Pods when the Node of a Machine is drained.
// +kubebuilder:validation:Enum=Drain;Skip;WaitCompleted
type MachineDrainRuleDrainBehavior string

const (
	// MachineDrainRuleDrainBehaviorDrain evicts the Pods.
	MachineDrainRuleDrainBehaviorDrain MachineDrainRuleDrainBehavior = "Drain"
	// MachineDrainRuleDrainBehaviorSkip leaves the Pods on the Node.
	MachineDrainRuleDrainBehaviorSkip MachineDrainRuleDrainBehavior = "Skip"
	// MachineDrainRuleDrainBehaviorWaitCompleted waits for the Pods to complete, and does not evict them.
	MachineDrainRuleDrainBehaviorWaitCompleted MachineDrainRuleDrainBehavior = "WaitCompleted"
)

// MachineDrainRuleSpec is what happens to which Pods on which machines. Of several rules for a Pod, the one whose name
// sorts first applies.
type MachineDrainRuleSpec struct {
	// drain is what happens to the Pods.
	// +required
	Drain MachineDrainRuleDrainConfig `json:"drain,omitempty,omitzero"`

	// machines select the machines in the namespace of the rule to which it applies; any match is sufficient. When unset,
	// all machines.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self.all(x, self.exists_one(y, x == y))",message="entries in machines must be unique"
	Machines []MachineDrainRuleMachineSelector `json:"machines,omitempty"`

	// pods select the Pods to which the rule applies; any match is sufficient. When unset, all Pods.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self.all(x, self.exists_one(y, x == y))",message="entries in pods must be unique"
	Pods []MachineDrainRulePodSelector `json:"pods,omitempty"`
}

// MachineDrainRuleDrainConfig is what happens to Pods.
type MachineDrainRuleDrainConfig struct {
	// behavior is Drain, to evict the Pods, Skip, to leave them on the Node, or WaitCompleted, to wait until they have
	// completed.
	// +required
	Behavior MachineDrainRuleDrainBehavior `json:"behavior,omitempty"`

	// order is the position in the order of draining: Pods are evicted when all Pods with a lower order are gone. Only with
	// behavior Drain. When unset, 0.
	// +optional
	Order *int32 `json:"order,omitempty"`
}

// MachineDrainRuleMachineSelector selects machines. Both of its selectors must match.
// +kubebuilder:validation:MinProperties=1
type MachineDrainRuleMachineSelector struct {
	// selector selects machines by their labels. When unset, all machines.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// clusterSelector selects machines by the labels of their Cluster. When unset, those of all Clusters.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
}

// MachineDrainRulePodSelector selects Pods. Both of its selectors must match.
// +kubebuilder:validation:MinProperties=1
type MachineDrainRulePodSelector struct {
	// selector selects Pods by their labels. When unset, all Pods.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// namespaceSelector selects Pods by the labels of their namespace in the workload cluster. When unset, those of all
	// namespaces.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=machinedrainrules,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Behavior",type="string",JSONPath=".spec.drain.behavior",description="What happens to the Pods"
// +kubebuilder:printcolumn:name="Order",type="string",JSONPath=".spec.drain.order",description="Position in the order of draining"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// MachineDrainRule is what happens to Pods when the Node of a Machine is drained.
type MachineDrainRule struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of objects.
	// +required
	metav1.ObjectMeta `json:"metadata"`

	// spec is the desired state.
	// +required
	Spec MachineDrainRuleSpec `json:"spec,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// MachineDrainRuleList is a list of MachineDrainRules.
type MachineDrainRuleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineDrainRule `json:"items"`
}
