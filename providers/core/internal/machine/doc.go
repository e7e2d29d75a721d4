// Package machine reconciles Machines: it waits for bootstrap data, infrastructure and Node, copies their state into the
// Machine, and deletes everything in order when the Machine is deleted.
//
// The steps, in order, and what each guarantees:
//
//	cluster         the Cluster exists
//	adopt           the Machine has the cluster name label, an owner and the finalizer in the API server
//	bootstrap       spec.bootstrap.dataSecretName is copied from the bootstrap config, once
//	infrastructure  provider ID, addresses and failure domain are copied from the infrastructure machine
//	node            status.nodeRef is the Node with that provider ID; the Node's health is copied, and the
//	                Machine's labels, annotations and taints are on the Node
//	certificates    the expiry of a control plane Machine's certificates is in the status
//	update          an extension has updated a Machine in place whose owner has marked it for that
//
// Every reconcile attempts all of bootstrap, infrastructure, node, certificates and update. Deletion:
//
//	node-work              decides whether to drain the Node: not if the cluster itself is being deleted. A Node that has joined
//	                       since the last reconcile is found
//	pre-drain-hooks        no pre-drain hook is set
//	drain                  the Node is drained
//	volumes                no volumes are attached to the Node
//	pre-terminate-hooks    no pre-terminate hook is set
//	delete-infrastructure  the infrastructure machine is gone
//	delete-bootstrap       the bootstrap config is gone
//	delete-node            the Node is deleted
//	finish                 all objects of the Machine are deleted, and the finalizer is removed
//
// Drain and volumes are skipped if the cluster stays unreachable. Irreversible decisions are based on reads from the API server.
// Last, whether or not the Machine is being deleted:
//
//	phase           status.phase is derived from the other fields
//	report          metav1 conditions follow from what the steps found
//	bounds          values copied from providers and workload clusters have a limited size
//
// Workload clusters and provider objects are not trusted: a Node must match the Machine by provider ID, and the size of
// copied values is limited.
package machine
