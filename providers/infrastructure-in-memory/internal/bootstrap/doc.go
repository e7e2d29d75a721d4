// Package bootstrap interprets the bootstrap data of a simulated machine: whether kubeadm creates or joins a cluster, and
// whether a real kubeadm would succeed.
//
// It supports the cloud-config and the Ignition documents of the kubeadm bootstrap provider, this project's and that of Cluster
// API v1.7, which store the kubeadm configuration in the same files. Machines with data in any other format start without checks.
//
// Data that fills etcd's data directory before kubeadm init (restore.go) is interpreted, too: the package downloads and reads it like the
// script on a real machine. The script itself is not run.
//
// Package machine reads the Secret, retries, and runs what follows.
package bootstrap
