// Package cluster reconciles DockerClusters, and DevClusters with backend docker: each is a load balancer for the API servers of a
// cluster, HAProxy in a container.
//
// The steps:
//
//	adopt      waits for the Cluster; the object has its finalizer and its identity, which its container gets as a label
//	container  the container of the load balancer exists and runs
//	configure  HAProxy has loaded a configuration with all control plane machines that have an address. Machines that are
//	           being deleted leave it: they keep their connections and get no new ones. HAProxy validates templates of users
//	           before it loads them
//	register   the machines in that configuration have status.loadBalancerConfigured, for which their bootstrap waits
//	endpoint   the address of the container is the endpoint; failure domains are in the status; the object is ready
//	remove     in deletion: the container does not exist, nor the network if no other container uses it
//
// HAProxy reloads its configuration by SIGHUP: a new process takes over the listening sockets, and the old one continues to
// serve its connections. A file in the container records what was loaded, so that nothing is reloaded without need after a
// restart of this manager, and nothing is missed if it is killed in between.
//
// Before the container is created or removed, the object and its Cluster are read from the API server: one that is paused is left alone.
//
// Changes of the container, such as its removal by hand, arrive as events (package events). Externally managed objects
// (annotation cluster.x-k8s.io/managed-by) are ignored.
package cluster
