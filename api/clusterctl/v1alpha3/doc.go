// Package v1alpha3 holds the kinds of the API group clusterctl.cluster.x-k8s.io: Provider, the inventory of a management
// cluster, and Metadata, the file metadata.yaml of a provider's releases, with the labels and annotations for installing,
// moving and finding objects. Reading, installing and moving do not belong here.
//
// +kubebuilder:object:generate=true
// +groupName=clusterctl.cluster.x-k8s.io
package v1alpha3
