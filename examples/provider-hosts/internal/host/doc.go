// Package host reconciles Hosts: it reports whether they can be claimed. It is the smallest controller there is.
//
//	phase           status.phase and the condition Available say who has the Host
package host
