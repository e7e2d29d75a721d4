// Package cluster reconciles Clusters: it copies the state of the infrastructure and control plane objects into the Cluster,
// and deletes everything in order when the Cluster is deleted.
//
// The steps, in order, and what each guarantees:
//
//	finalizer       the finalizer is in the API server before any other step runs
//	infrastructure  infrastructureProvisioned, endpoint and failure domains are copied from the infrastructure object; without one, it
//	                is provisioned
//	control-plane   controlPlaneInitialized, and the endpoint if there is none yet, are copied from the control plane object
//	initialized     ControlPlaneInitialized becomes True once, and stays True
//	kubeconfig      a Cluster without control plane object has a kubeconfig, signed by its CA
//
// Deletion waits for each of these before it continues:
//
//	held                   extensions with the hook BeforeClusterDelete allow the deletion, recorded in an annotation
//	delete-children        workers, and control plane Machines without control plane object, are gone
//	delete-control-plane   the control plane object is gone
//	delete-infrastructure  the infrastructure object is gone
//	finish                 no descendants are left, and the finalizer is removed
//
// Last, whether or not the Cluster is being deleted:
//
//	phase           status.phase is derived from the other fields
//	gather          what belongs to the Cluster is read from caches, for conditions and counters
//	counters        Machines of the control plane and of workers are counted in status.controlPlane and status.workers
//
// A Cluster of a ClusterClass is not reconciled until the topology controller has set both references.
//
// The conditions in status.conditions are functions of what gather has found (reports.go). Changes of Machines, MachineDeployments,
// MachineSets and MachinePools come in bursts: two seconds after the first one, the Cluster is reconciled once for all of them.
//
// Caches may be stale. Therefore the controller lists the descendants from the API server, with four requests, right before it
// deletes the control plane, before it deletes the infrastructure, and before it removes the finalizer. It also confirms with
// one request each that the control plane and infrastructure objects are gone.
package cluster
