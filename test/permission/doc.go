// Package permission checks that managers use all permissions that they are granted, and that none of their requests is
// forbidden; that they write only objects with the label of --watch-filter, whatever event triggers the reconcile; and that they access
// only one namespace with --namespace.
//
//	world_test.go     managers as processes, each as its own ServiceAccount with the manifests of a release, and an audit log
//	walk_test.go      the lifecycle of a Cluster
//	migration_test.go definitions whose objects managers migrate
//	audit_test.go     the requests of each manager in the audit log
//	unused_test.go    the comparison; permissions that the walk does not need, each with a reason
//	metric_test.go    the names of the metrics that the managers serve
//	scope_test.go     requests with --watch-filter and --namespace, of managers that run in the test, with all flags
//
// Permissions that are only needed after failures belong in the table of reasons, not in the walk: test/fault injects faults.
package permission
