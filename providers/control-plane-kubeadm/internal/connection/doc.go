// Package connection connects a reconcile to its workload cluster, within limits of time.
//
//	workload.go  what a control plane needs of its workload cluster
//	connect.go   gets the connection, or the reason why there is none
//	limits.go    bounds the time that a reconcile spends on a workload cluster
//	backoff.go   backs off from unresponsive API servers and etcd members, until the connection is replaced
//
// Reading and changing a workload cluster belongs in package workload, and its health in package health.
package connection
