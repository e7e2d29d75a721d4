// Package backupstore reconciles BackupStores, and opens them for the controllers that keep archives in them.
//
// The steps:
//
//	protect  the finalizer is in the API server
//	import   the EtcdBackups of archives that users asked for exist, see fleetv1.ImportAnnotation
//	check    archives can be written to the store, and read: by doing it, when its spec or its credentials change, and every hour. Before
//	         that, what killed uploads have left behind is removed
//
// Deletion:
//
//	release  no EtcdBackup needs the store to delete its archive; then the finalizer is removed
//
// How objects are kept belongs in package store.
package backupstore
