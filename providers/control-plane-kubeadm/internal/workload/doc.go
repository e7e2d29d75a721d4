// Package workload reads and changes what belongs to a control plane in its workload cluster: Nodes and static Pods, etcd
// members, the configuration of kubeadm and kubelets, RBAC for joining Machines, kube-proxy and CoreDNS.
//
// A steady cluster costs almost no requests: Nodes and Pods come from a cache (see Cached), connections to etcd are kept while
// they are in use, and objects that were verified once per connection are not read again. All operations are idempotent.
//
// Health is determined in package health, and decisions are made in packages membership and scale.
package workload
