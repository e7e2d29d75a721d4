// Package v1alpha1 holds the API of the fleet provider: backups of the etcd of workload clusters, where they are kept, and what restores
// them. With the kinds are the reasons of their conditions, and the labels, annotations and finalizers that the provider sets.
//
// +kubebuilder:object:generate=true
// +groupName=fleet.cluster.x-k8s.io
package v1alpha1
