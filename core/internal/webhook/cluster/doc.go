// Package cluster defaults and validates Clusters on admission.
//
// The rules of topologies are in the topology packages (check, variables). Here it is decided which of
// them a request has to keep and what has to be read for them: the class, and during an upgrade the
// control plane and the workers. A request that leaves the topology as it is costs no read at all.
package cluster
