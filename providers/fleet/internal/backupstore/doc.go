// Package backupstore reconciles BackupStores, and opens them for the controllers that keep archives in them.
//
// The step:
//
//	check  archives can be written to the store, and read: by doing it, when its spec or its credentials change, and every hour. Before
//	       that, what killed uploads have left behind is removed
//
// How objects are kept belongs in package store.
package backupstore
