// Package cloudinit renders bootstrap data as a cloud-init document: files, users, disks and the commands
// that run kubeadm.
//
// It is a pure function of its input: no clock, no randomness, no API requests. The configuration of kubeadm, and
// which keys a machine gets, are up to the caller.
package cloudinit
