// Package health determines the health of control plane Machines from their workload cluster.
//
//	observe.go     reads Nodes and Pods, and queries the etcd members
//	conditions.go  computes the conditions of a Machine from that
//
// Later steps base their decisions on the Observation. Decisions do not belong here, and neither do the conditions of the
// KubeadmControlPlane, which derive from those of the Machines.
package health
