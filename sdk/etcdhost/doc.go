// Package etcdhost is for infrastructure providers that run commands on their machines: the script that does what a ControlPlaneRecovery
// asks of the etcd member on a machine, and the interpretation of what it prints. The annotations are in package
// sigs.k8s.io/cluster-api/api/fleet/v1alpha1: EtcdCommandOf returns what is asked, SetEtcdAnswer sets the answer.
//
// The script needs root, sh, curl and flock, and a control plane of kubeadm, with etcd in a static Pod. How it gets to the machine does not
// belong here.
package etcdhost
