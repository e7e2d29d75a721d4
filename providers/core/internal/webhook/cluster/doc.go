// Package cluster defaults and validates Clusters on admission.
//
// The rules for topologies are in the topology packages (check, variables). This package decides which of them apply to a
// request, and reads what they require: the class, and for an upgrade the control plane and the workers. A write that does not
// change the topology reads only the class, from the cache.
package cluster
