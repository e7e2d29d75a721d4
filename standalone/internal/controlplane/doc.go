// Package controlplane runs a Kubernetes control plane inside the process: etcd, kube-apiserver and the few built-in
// controllers without which the API does not behave like a cluster's (garbage collection, namespace deletion,
// aggregation of ClusterRoles, the default ServiceAccount of each namespace). All of it is Kubernetes' and etcd's own
// code, used as libraries.
//
//	controlplane.go  Start, Stop: the order in which the parts come up and go down
//	etcd.go          storage on a unix socket in the private data directory
//	storage.go       Secrets are encrypted, with the newest key
//	apiserver.go     which parts of kube-apiserver are on
//	audit.go         what is recorded of requests
//	controllers.go   the built-in controllers
//	discovery.go     lets the garbage collector see new CRDs at once without asking again and again
//	version.go       what the server says its version is
//	kubeconfig.go    the administrator's kubeconfig
//
// Hosting of provider components is package host's.
package controlplane
