// Package v1beta2 holds the kinds of the API group cluster.x-k8s.io: Cluster, ClusterClass, Machine, MachineSet,
// MachineDeployment, MachinePool, MachineHealthCheck and MachineDrainRule, with the condition types, reasons and phases that are
// part of their contract. It also holds the labels, annotations, finalizers and taints, which are the same for all versions.
//
// This package defines the API of users and providers. It does not implement behavior (defaulting, validation,
// reconciling), apart from small accessors.
//
// Optional booleans and numbers are pointers where unset and zero differ. Objects with optional fields only must not be empty.
//
// The string form of GroupVersion, "cluster.x-k8s.io/v1beta2", is also the key of the label on a provider's CRDs that
// lists the versions that implement this contract.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.x-k8s.io
package v1beta2
