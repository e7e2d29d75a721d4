// Package kubeadmread only contains a test: kubeadm itself reads the configuration that the bootstrap provider generates,
// and that the control plane provider updates in clusters. It is in this module because only this one depends on
// k8s.io/kubernetes.
package kubeadmread
