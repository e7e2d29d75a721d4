// Package cluster reconciles Clusters: it brings a Cluster's infrastructure and control plane objects
// together, copies what they say into the Cluster, and takes everything down in order when it is deleted.
//
// The steps, in order, and what each guarantees:
//
//	finalizer       nothing below happens before the finalizer is in the API server
//	infrastructure  infrastructureReady, endpoint and failure domains are those of the infrastructure object
//	control-plane   controlPlaneReady is that of the control plane object
//	initialized     ControlPlaneInitialized becomes True once, and stays
//	kubeconfig      a Cluster without control plane object gets a kubeconfig, made from its CA
//
// When a Cluster is deleted, each of these is awaited:
//
//	delete-children        workers, and control plane Machines that no control plane object manages, are gone
//	delete-control-plane   the control plane object is gone
//	delete-infrastructure  the infrastructure object is gone
//	finish                 nothing of the Cluster is left, and the finalizer is removed
//
// Last, in both cases:
//
//	phase           the phase follows from all of the above
//
// A Cluster of a ClusterClass is left alone until the topology controller has set both references.
//
// Right before control plane, infrastructure and Cluster go, the API server is asked whether anything is left that needs them: four
// lists each time. That a provider's object is gone is asked once, too.
package cluster
