// Package standalone is a management cluster in one program: etcd, kube-apiserver, the built-in controllers that an API
// needs to behave like a cluster's, and the provider components of this project, run as their Deployments specify. It is
// its own Go module, because k8s.io/kubernetes as a library has dependencies that the other programs do not need.
//
// Build it from the repository's root (the flags of ldflags.sh are optional: they stamp the Kubernetes version into
// every client and log line; the server's own version is right without them):
//
//	cd standalone && go build -ldflags "$(./ldflags.sh)" -o ../bin/capi ./cmd/capi
//
// Run it:
//
//	capi serve --data-dir DIR --kubeconfig FILE
//
// What belongs where:
//
//	components.go          which components the program hosts
//	internal/command       the command line
//	internal/datadir       lock, paths, sockets of the data directory
//	internal/certs         CA and certificates
//	internal/controlplane  etcd, API server, built-in controllers
//	internal/host          runs components for their Deployments
//	internal/check         tells what our managers would write in another management cluster
//	internal/readonly      clients of API servers that only read
//	internal/testcluster   a complete cluster for tests
package standalone
