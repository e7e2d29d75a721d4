// Package cloudinit renders bootstrap data as a cloud-init document: files, users, disks and the commands
// that run kubeadm.
//
// It is a pure function of its input: no clock, no randomness, no API requests. What kubeadm is told, and
// who may have which keys, is decided by the caller.
package cloudinit
