// Package host reconciles Hosts: it reports whether they can be claimed, and keeps those that are. The only step is
//
//	phase           status.phase and the condition Available report whether the Host can be claimed; without a claim it has no finalizer
//
// A Host that is being deleted takes the same step: it stays while it is claimed.
//
//	phase
package host
