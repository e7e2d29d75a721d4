// Package v1beta1 holds the kinds of the API group cluster.x-k8s.io: Cluster, ClusterClass, Machine, MachineSet,
// MachineDeployment, MachinePool and MachineHealthCheck, with the labels, annotations, finalizers, taints, condition
// types, reasons and phases that are part of their contract.
//
// What belongs here is what goes over the wire or is promised to users and providers. Behaviour (defaulting,
// validation, reconciling) does not, apart from small methods that say what a field means.
//
// The string form of GroupVersion, "cluster.x-k8s.io/v1beta1", is also the key of the label by which a provider's
// CRDs say which of their versions honour this contract.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.x-k8s.io
package v1beta1
