// Package permission finds out what managers are granted and never use, and what they use and are not granted.
//
//	world_test.go   managers as processes, each as its own ServiceAccount with the manifests of a release, and an audit log
//	walk_test.go    what users do meanwhile: a Cluster of a class and a plain one live their lives
//	audit_test.go   what the audit log says that each manager did
//	unused_test.go  the comparison; grants that the walk does not need, each with its reason
//	metric_test.go  the names of the metrics that these managers serve
//
// Rights that are only needed when something goes wrong belong into the table of reasons, not into the walk: faults are
// for test/fault.
package permission
