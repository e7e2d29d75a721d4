// Package v1beta1 holds the kinds of the API group cluster.x-k8s.io: Cluster, ClusterClass, Machine, MachineSet,
// MachineDeployment, MachinePool, MachineHealthCheck and MachineDrainRule, with the labels, annotations, finalizers, taints,
// condition types, reasons and phases that are part of their contract.
//
// Where a type equals that of v1beta2, this package has it as an alias.
//
// This package defines the API of users and providers. It does not implement behavior (defaulting, validation,
// reconciling), apart from small accessors.
//
// The string form of GroupVersion, "cluster.x-k8s.io/v1beta1", is also the key of the label on a provider's CRDs that
// lists the versions that implement this contract.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.x-k8s.io
package v1beta1
