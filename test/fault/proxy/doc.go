// Package proxy stands between one manager and everything it talks to: the API server of the management cluster and,
// because it gives the manager kubeconfigs that lead here, those of workload clusters. It does to requests what a
// Script says.
//
//	proxy.go     what a manager connects to, and who is killed
//	endpoint.go  one address: requests in, requests out
//	act.go       what faults do
//	watch.go     streams of events
//	shim.go      the addresses of workload clusters, and the kubeconfigs that lead to them
//
// Everything is read as JSON, so that events and Secrets can be understood. What goes through a forwarded port is
// encrypted end to end, and only passed on.
package proxy
