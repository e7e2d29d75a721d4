// Package ready decides when a change of a Cluster is rolled out: all that its spec requires exists, is up to date and is ready.
//
// Remaining and Waiter are functions of the objects of a Cluster's tree. Commands that wait show the first of what they return.
package ready
