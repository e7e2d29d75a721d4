package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MachineDrainRuleSpec is what happens to which Pods on which machines. Of several rules for a Pod, the one whose name
// sorts first applies.
type MachineDrainRuleSpec = clusterv1beta2.MachineDrainRuleSpec

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
