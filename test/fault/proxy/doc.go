// Package proxy proxies all requests of one manager: to the API server of the management cluster and, by replacing the
// server in kubeconfigs, to those of workload clusters. It injects the faults of a Script.
//
//	proxy.go      the endpoints of one manager, which it can restart
//	endpoint.go   one address: forwards requests
//	inject.go     injects faults into requests
//	partition.go  blocks requests during partitions
//	stale.go      returns stale lists
//	touch.go      changes Machines before watches freeze
//	watch.go      forwards watches
//	shim.go       the endpoints for workload clusters, and the kubeconfigs with their addresses
//
// All responses are JSON, so that the proxy can parse events and Secrets. Connections through forwarded ports are encrypted
// end to end; the proxy only forwards bytes.
package proxy
