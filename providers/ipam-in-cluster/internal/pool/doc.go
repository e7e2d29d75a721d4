// Package pool reconciles InClusterIPPools and GlobalInClusterIPPools: it reserves addresses for claims. The controller of the claims
// creates the IPAddresses.
//
// The steps:
//
//	protect   the pool has its finalizer
//	sweep     IPAddresses whose claim does not exist are deleted
//	allocate  claims that wait have a reservation in status.reservations, the lowest free addresses first come first served, and
//	          status.ipAddresses has the numbers, those of mere releases a second later; done reservations are dropped with the next
//	          change
//	sweep
//	drain     in deletion: the finalizer is removed when the pool has neither IPAddresses nor reservations
//
// An address is never allocated twice, even if two processes reconcile a pool, or a cache is stale, or a process is killed:
//
//   - An IPAddress is only created for a reservation, and a reservation is only made by a write of the pool's status that fails if
//     the reservations changed since they were read; their sequence detects every change.
//   - A reservation is only dropped once this process has seen the IPAddress, or once the claim does not exist. After that, a process
//     that still has the reservation cannot create the IPAddress: its name is taken, or its claim is gone.
//   - So every allocated address is either reserved or has an IPAddress. A process whose cache may lack an IPAddress, because another
//     one dropped its reservation, reads the IPAddresses from the API server before it reserves addresses.
package pool
