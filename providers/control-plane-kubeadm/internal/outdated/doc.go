// Package outdated compares control plane Machines with the spec of their KubeadmControlPlane: a Machine that differs must be
// replaced.
//
//	outdated.go  all reasons
//	config.go    differences between a KubeadmConfig and kubeadmConfigSpec
//
// Only fields count that cannot be changed in place. Labels, annotations and timeouts can (package machines). Replacing a
// Machine is expensive, so missing information never counts as a difference, for example if another controller has created the
// Machine.
package outdated
