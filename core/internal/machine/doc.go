// Package machine reconciles Machines: it brings a Machine to what its spec asks for (bootstrap data,
// infrastructure, a Node) and takes it down in order when it is deleted.
//
// The steps, in order, and what each guarantees:
//
//	adopt           cluster-name label, an owner, and the finalizer, in the API server before anything else
//	bootstrap       the name of the bootstrap data Secret is that of the bootstrap provider's
//	infrastructure  provider ID, addresses and failure domain are those of the infrastructure machine
//	node            the Node with that provider ID is found; its health is mirrored; labels, annotations and
//	                taints that belong to us are on it
//	certificates    the expiry of a control plane Machine's certificates is recorded
//	phase           the phase follows from all of the above
//
// Bootstrap to certificates are all attempted in each reconcile.
//
// Deletion: pre-drain hooks, drain, volumes detached, pre-terminate hooks, infrastructure gone, bootstrap
// object gone, Node deleted, finalizer removed. Work on the Node is skipped when the cluster itself goes away, and after a
// while if the cluster cannot be reached. What cannot be undone is decided on live reads.
//
// Workload clusters and providers' objects are not trusted: a Node is the Machine's by UID or provider ID, and what is
// taken over of either is bounded.
package machine
