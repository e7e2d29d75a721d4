// Package claim reconciles the IPAddressClaims of pools of this provider: it creates their IPAddresses from the reservations of the
// pools, and deletes them. Claims of other providers' pools are ignored.
//
// The steps:
//
//	pool     the pool exists and is valid
//	adopt    the claim has its finalizer; from then on the pool reserves an address
//	address  the IPAddress exists, with the reserved address, and status.addressRef references it
//	release  in deletion: the IPAddress is deleted, then the finalizer is removed
package claim
