// Package restore reconciles ControlPlaneRestores: each replaces the control plane of a Cluster by one with the data of a backup.
//
// The steps, in order, and what each guarantees:
//
//	protect  the finalizer is in the API server, and the object is not moved to another management cluster while it works
//	latest   the status in the cache is that in the API server: no step is taken twice because of an old cache
//	check    the restore does no harm, and can work; otherwise nothing is changed, and the condition says why
//	inspect  the archive was read: it can be decrypted, is complete, and its snapshot can be restored
//	confirm  users have confirmed what is lost. Nothing was changed up to here
//	hold     the controller of the control plane changes neither Machines nor members of etcd
//	prepare  the data of etcd is in the store, encrypted, and a Secret has what a Machine needs to use it; missing CAs are restored
//	fence    the previous control plane Machines are gone. Before, everything that is needed is in place
//	create   one Machine runs the control plane with the data
//	member   etcd has one member, at its own address, and a revision that is higher than any before
//	nodes    Nodes of Machines that no longer exist are deleted, never one whose Machine exists
//	release  the controller of the control plane has it again, and what was stored is deleted
//
// Deletion:
//
//	discard  the control plane is given back, and what was stored is deleted; then the finalizer is removed. If Machines were already
//	         deleted, the steps above are completed before
//
// All steps from inspect to release have a mark in status.steps. Each can be interrupted by the end of the process after any request, and
// is repeated then. Once Machines are deleted, only success ends the restore, or
// the deletion of its Cluster: what goes wrong is tried again, and reported.
//
// Nothing of it is cached apart from ControlPlaneRestores, Clusters, EtcdBackups and BackupStores: who does not restore has no cost. So
// steps poll.
//
// How a Machine fills etcd's data directory belongs in backup/restorescript, what archives contain in package content.
package restore
