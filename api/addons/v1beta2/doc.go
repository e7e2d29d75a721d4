// Package v1beta2 holds the kinds of the API group addons.cluster.x-k8s.io: ClusterResourceSet, which applies manifests
// to workload clusters, and ClusterResourceSetBinding, which records what was applied. Their conditions and reasons are
// here too; applying manifests is not.
//
// +kubebuilder:object:generate=true
// +groupName=addons.cluster.x-k8s.io
package v1beta2
