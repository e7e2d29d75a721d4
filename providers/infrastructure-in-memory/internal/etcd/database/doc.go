// Package database writes and reads etcd's database file, as a member of a workload cluster has it: a bbolt file with etcd's buckets,
// with an entry per revision, and the objects as a kube-apiserver stores them with --storage-media-type=application/json.
// It reads a database in a data directory, which is from outside (directory.go), and writes one for snapshots (file.go).
//
// The file has the objects of a store. Revisions are resource versions, and the history that the store keeps for watches is that since
// etcd's last compaction. What only the simulation has, such as machines, is not in it; changes of it are revisions of the key in which
// API servers note their compactions, so that every revision exists. Create revisions and numbers of versions start at the compaction,
// because a store does not keep earlier ones.
//
// Files are temporary and have no name, so that nothing is left of them, even if the process is killed. Writing needs the memory of a
// transaction, not that of the database.
//
// What does not belong here: membership, and etcd's API, which are in package etcd.
package database
