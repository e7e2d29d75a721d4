// Package check validates ClusterClasses and the topologies of Clusters: whether a class is valid and ready to use, which
// changes of a class are compatible with its Clusters, whether a topology is valid for its class, and which changes of version
// are allowed.
//
// The rules are pure functions of objects that callers have read, so that admission and the topology controller agree. Rules for
// variables and patches belong in packages variables and patches.
package check
