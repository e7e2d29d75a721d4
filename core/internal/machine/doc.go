// Package machine reconciles Machines: it brings a Machine to what its spec asks for (bootstrap data,
// infrastructure, a Node) and takes it down in order when it is deleted.
//
// The steps, in order, and what each guarantees:
//
//	cluster         the Cluster exists
//	adopt           cluster-name label, an owner, and the finalizer, in the API server before anything else
//	bootstrap       the name of the bootstrap data Secret is that of the bootstrap provider's
//	infrastructure  provider ID, addresses and failure domain are those of the infrastructure machine
//	node            the Node with that provider ID is found; its health is mirrored; labels, annotations and
//	                taints that belong to us are on it
//	certificates    the expiry of a control plane Machine's certificates is recorded
//
// Bootstrap to certificates are all attempted in each reconcile. Deletion:
//
//	node-work              it is known whether there is work on the Node: not when the cluster itself goes away
//	pre-drain-hooks        everyone who has a hook agrees to the drain
//	drain                  Pods have left the Node
//	volumes                volumes are detached
//	pre-terminate-hooks    everyone who has a hook agrees to the end of the machine
//	delete-infrastructure  the infrastructure machine is gone
//	delete-bootstrap       the bootstrap config is gone
//	delete-node            the Node is deleted
//	finish                 the API server has no object of the Machine, and the finalizer is removed
//
// Drain and volumes are given up after a while if the cluster cannot be reached. What cannot be undone is decided on live
// reads. Last, in both cases:
//
//	phase           the phase follows from all of the above
//	bounds          what was taken over from others is not longer than it should be
//
// Workload clusters and providers' objects are not trusted: a Node is the Machine's by UID or provider ID, and what is
// taken over of either is bounded.
package machine
