// Package loadbalancer renders the configuration of HAProxy, the load balancer of a control plane, from the addresses of its
// machines: with the built-in template, or with one that users provide. It is pure.
//
// Templates of users run with a budget, because everyone who can write a DockerCluster and a ConfigMap can provide one.
//
// What does not belong here: the container of the load balancer, and which machines are its backends.
package loadbalancer
