// Package cluster reconciles HostClusters, which do nothing but report: the user gives the endpoint, the Hosts are the zones.
//
//	endpoint        the control plane has an endpoint, and the failure domains are known
package cluster
