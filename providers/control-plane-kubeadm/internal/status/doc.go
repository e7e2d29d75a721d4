// Package status computes the status of a KubeadmControlPlane from its Machines and from the observation of the workload
// cluster.
//
//	report.go  replicas, version, and the conditions that aggregate those of the Machines
//	health.go  the conditions for the health of components and etcd
//
// The conditions of Machines are set in package health, and conditions about single steps by these steps.
package status
