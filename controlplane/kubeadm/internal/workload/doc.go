// Package workload is what a control plane reads and does in its workload cluster: Nodes and static Pods, the members of
// etcd, kubeadm's and the kubelet's configuration, RBAC for Machines that join, kube-proxy and CoreDNS.
//
// Nodes and Pods come from a cache (see Cached), etcd is asked over connections that stay open, and what was verified
// once over a connection to the cluster is not looked at again, so that a steady cluster costs next to no requests.
// Everything may be done again after it was done or interrupted: objects are compared before they are written.
//
// What should happen when, and what is healthy, is not decided here but in packages health, membership and scale.
package workload
