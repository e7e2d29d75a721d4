// Package portforward connects to ports of Pods through an API server.
//
// It gives a control plane access to servers in Pods, such as etcd. Protocols on these connections do not belong here.
package portforward
