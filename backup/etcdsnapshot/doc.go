// Package etcdsnapshot receives snapshots of etcd, reads what is in them, restores them into data directories, and tries whether what
// they hold can be read again.
//
// A snapshot is etcd's database, a bbolt file, with its SHA-256 behind it, as the method Snapshot of etcd's API sends it. It may be
// damaged nevertheless: etcd computes the hash of what it has. Neither bbolt nor etcd expects that. They panic, also in goroutines of
// their own, follow pages in circles, or end the process. All functions on files therefore check the hash, and then every page, before
// bbolt sees them; Inspect is the complete check.
//
// Where snapshots come from, where they are kept, and what happens to a cluster during a restore does not belong here.
package etcdsnapshot

import "errors"

// Errors by what follows from them.
var (
	// ErrTruncated is returned for snapshots that end before their end: take another one.
	ErrTruncated = errors.New("the snapshot is truncated")
	// ErrDamaged is returned for snapshots whose content is invalid. If the hash was right, the database of the member is damaged, too: take
	// one from another member.
	ErrDamaged = errors.New("the snapshot is damaged")
)
