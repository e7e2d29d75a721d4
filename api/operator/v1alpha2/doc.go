// Package v1alpha2 holds the API of the operator, which installs, changes, upgrades and deletes providers as objects declare them:
// one kind per type of provider, all with the same spec and status, with the conditions, reasons, labels and annotations that the
// operator sets.
//
// The spec has the fields of both variants of this API: those of the proposal (secretName, paused, debug, image), and those of the
// releases that followed it (configSecret, imageUrl, oci, patches and others). The version v1alpha1 is served with the same schema.
//
// +kubebuilder:object:generate=true
// +groupName=operator.cluster.x-k8s.io
package v1alpha2
