// Package machine reconciles HostMachines. The steps, in order:
//
//	owners          the Machine and its Cluster are known, and the Cluster's infrastructure is ready
//	finalizer       a finalizer is in the API server before anything that it protects
//	claim           a Host is claimed, for this HostMachine alone
//	bootstrap       the bootstrap data has run on the Host, once, and succeeded
//	release         in deletion: the Host is reset, and free
//
// Which HostMachine has a Host is decided on the Host: its spec.claim is written only to the version that was read from the API
// server, so of two writers one fails. The claim's ID is on the machine too while data runs, so that not even a manager that lost its
// leadership in between runs or resets anything for another claim.
package machine
