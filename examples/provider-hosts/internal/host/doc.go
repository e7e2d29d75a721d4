// Package host reconciles Hosts: it reports whether they can be claimed.
//
//	phase           status.phase and the condition Available report whether the Host can be claimed
package host
