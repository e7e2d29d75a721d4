// Package check holds the rules that Clusters with a topology and their classes must keep: what makes a
// class valid and ready to use, which changes of a class its Clusters can follow, what a topology may ask
// of its class, and which versions it may go to.
//
// The rules are pure functions over objects that callers have read, so that admission webhooks and
// plans judge alike. The rules of variables and patches are with those packages.
package check
