// Package kubeadmread holds one test: kubeadm itself reads the configuration that the bootstrap provider
// writes, and what the control plane provider makes of it in clusters. It is in this module because only this one depends on Kubernetes' own source.
//
// Nothing else belongs here.
package kubeadmread
