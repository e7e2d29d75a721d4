// Package bootstrap is what a simulated machine makes of its bootstrap data: whether kubeadm begins a cluster or joins
// one, and whether a real kubeadm would succeed.
//
// It understands the cloud-config that the kubeadm bootstrap provider writes, this project's and Cluster API v1.7's,
// which have their kubeadm configuration in the same places. Data of any other form comes from a bootstrap provider
// whose machines cannot be simulated; such a machine starts without any check.
//
// What does not belong here: reading the Secret, retrying, and what the machine runs afterwards (package machine).
package bootstrap
