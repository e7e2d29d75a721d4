// Package members queries the etcd of a workload cluster during a run, over its own connections, which bypass the proxies.
// The results are samples, which package invariant checks.
//
// The in-memory provider serves all members of a cluster at one address and distinguishes them by server name, so no port
// is forwarded.
package members
