// Package cluster reconciles HostClusters: it creates nothing, but reports the endpoint that the user set and the zones of the Hosts.
//
//	endpoint        the control plane has an endpoint, and status.failureDomains are the zones of Hosts
package cluster
