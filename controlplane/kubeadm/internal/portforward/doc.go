// Package portforward opens connections to ports of Pods through an API server.
//
// It is how a control plane reaches what listens only inside of its Pods, such as etcd. It knows nothing of what is said
// over the connections.
package portforward
