// Package controlplane runs a Kubernetes control plane inside the process: etcd, kube-apiserver and the few built-in
// controllers that API clients rely on (garbage collection, namespace deletion, aggregation of ClusterRoles, the default
// ServiceAccount of each namespace). It uses Kubernetes and etcd as libraries.
//
//	controlplane.go  Start, Stop: the order in which the parts start and stop
//	etcd.go          storage on a unix socket in the private data directory
//	storage.go       encryption of Secrets, with the latest key
//	apiserver.go     which parts of kube-apiserver are enabled
//	audit.go         the audit log
//	controllers.go   the built-in controllers
//	discovery.go     lets the garbage collector see new CRDs immediately without polling
//	version.go       the reported version
//	kubeconfig.go    the admin kubeconfig
//
// Package host runs provider components.
package controlplane
