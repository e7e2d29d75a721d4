// Package members watches the etcd of a workload cluster while a run goes on, over connections of its own that no proxy is
// part of. What it sees are samples; what they mean is for package invariant.
//
// The in-memory provider serves all members of a cluster at one address and tells them apart by the server name, which
// saves forwarding ports.
package members
