// Package orphan releases IPAddresses that have neither a claim nor a pool: a process that was suspended may create one after the claim
// was released and the pool was deleted. The garbage collector deletes it, because its owners do not exist, but the finalizer keeps it.
//
// Deletion:
//
//	release  removes the finalizer of an IPAddress whose claim does not exist
//
// IPAddresses whose claim or pool exists do not belong here: their controllers release them.
package orphan
