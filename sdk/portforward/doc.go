// Package portforward connects to ports of Pods through an API server.
//
// It gives a control plane access to etcd, and clusterctl to runtime extensions. Protocols on these connections do not belong here.
package portforward
