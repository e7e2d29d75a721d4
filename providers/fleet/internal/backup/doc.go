// Package backup reconciles EtcdBackups: each is one archive in a BackupStore, with a snapshot of a Cluster's etcd, the Secrets
// of its CAs,
// and the objects that describe it.
//
// The steps, in order, and what each guarantees:
//
//	protect  the finalizer is in the API server before there is an archive
//	store    the archive is in the store, complete, or the backup has failed permanently. Errors are retried until its time is over.
//	         A backup that was imported adopts its archive instead
//	verify   the archive was read back, and verified as the spec demands
//
// Deletion:
//
//	discard  the archive is deleted, or must be kept; then the finalizer is removed
//
// An archive goes from the etcd member to the store as a stream: nothing of it is kept in files, and little in memory. Its key
// follows from
// the EtcdBackup, so that a manager that was killed replaces what it has left behind. Only the verification of the content needs
// files: they
// are in a private directory, and are removed at once.
//
// Secrets are read from the API server when they are needed, so that a backup costs no memory while there is none.
//
// Which member a snapshot is from is decided in package member, when backups are made in package policy.
package backup
