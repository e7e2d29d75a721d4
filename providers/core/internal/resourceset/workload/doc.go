// Package workload applies the objects of manifests to a workload cluster.
//
// Once creates objects that do not exist, and never changes one. Reconcile applies objects server-side, with a field manager of its
// own and force: what the manifest states wins, fields that users added are kept, and fields that left the manifest are removed.
//
// Tenants control manifests and workload clusters: errors never quote what was sent or received, because that may be the contents of a
// Secret, and a cluster that stops responding ends a Session.
//
// What does not belong here: when to apply, and what is recorded (package binding).
package workload
