// Package external fetches and watches objects of kinds that are only known while the manager runs: what a reference in
// a Cluster, a Machine or a ClusterClass names.
//
// Both work on unstructured objects of the manager's cache, so that a kind has one informer in the process however many
// controllers are interested in it. NewCache makes that cache. What is in such an object is read with package contract.
package external
