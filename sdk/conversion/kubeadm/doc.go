// Package kubeadm converts the kinds of the kubeadm bootstrap and control plane providers between the versions v1beta1 and v1beta2.
// Its functions are those that conversion webhooks need, so that an API server serves both versions.
//
// What a version cannot express is kept in the annotation cluster.x-k8s.io/conversion-data, and given back to clients of the other
// version unless it was changed meanwhile.
//
// Defaulting and validation do not belong here.
package kubeadm
