// Package report makes metav1 conditions: what a controller reports about an object to people and tools. v1beta2 has them in
// status.conditions, v1beta1 in status.v1beta2.conditions.
//
// A controller computes all of its reports at the end of a reconcile, as a function of what its steps found (step.Controller.Reports);
// steps themselves set only conditions of package condition, which code reads. Summary derives a condition from others of the same
// object, and Aggregate from one condition of several objects, in the line forms of Cluster API v1.14. Nothing here does I/O or is
// specific to one kind.
package report
