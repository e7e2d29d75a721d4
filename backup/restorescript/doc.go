// Package restorescript has the script that fills etcd's data directory on a machine before kubeadm init founds a cluster from it, and its
// configuration. A script, because machines have no other program of ours.
//
// What does not belong here: making the data, storing it, and rendering bootstrap data that runs the script.
package restorescript
