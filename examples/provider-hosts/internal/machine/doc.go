// Package machine reconciles HostMachines. The steps, in order:
//
//	owners          the Machine and its Cluster are known, and the Cluster's infrastructure is ready
//	finalizer       the finalizer is in the API server before anything is claimed
//	claim           a Host is claimed for this HostMachine only
//	bootstrap       the bootstrap data has run on the Host, once, and succeeded
//	etcd-command    what a ControlPlaneRecovery asks of the etcd member on the Host is done and answered; annotations, see package etcdhost
//	release         in deletion: the Host is reset, and its claim removed
//
// The Host decides which HostMachine has it: spec.claim is written with the resource version of a live read, so one of two concurrent
// writers gets a conflict. The scripts that run on the machine compare the claim's ID too: a manager that has lost its leadership
// cannot bootstrap or reset a Host for a claim that has since changed.
package machine
