// Package topology makes the objects of Clusters that have a topology, and keeps them as their ClusterClass says.
//
// The controller's steps, in order:
//
//	work       the plan is made, without writing: what the Cluster is to have (package desired) at which version (package
//	           upgrade), and what of that is not there
//	confirm    before anything that exists is changed or deleted: Cluster and ClusterClass are still what the plan was made of
//	refer      labels, finalizer and the references to infrastructure cluster and control plane are in the Cluster
//	apply      what differs is applied, server-side, as the field manager capi-topology
//	leftovers  templates that were rotated away and not deleted then are found
//	prune      workers that left the topology, health checks that were switched off, and templates that nothing uses, which is
//	           decided on a live view, are deleted
//
// Plans are made from caches, and whether applying an object would change it is decided locally (package ssa), so a Cluster
// that is as it should be costs no request at all. A template is replaced only if what is wanted of it changed, and if the API
// server confirms in a dry run that applying it would change the template.
//
// Names derive from the Cluster's UID, so the references are written before the objects exist: whoever deletes the Cluster
// after a crash at any request finds everything, by reference or by owner. Objects have their labels and owners from the first
// request on, and applying the same name twice ends in one object: an interrupted reconcile starts over. The order is templates
// and infrastructure cluster, then workers, then the control plane and the health checks: workers that do not exist yet wait
// for a control plane that is being provisioned, but not for one that is not there.
//
// A Cluster that is being deleted is left alone but for a condition:
//
//	deleted    condition TopologyReconciled says so
//
// A Planner does the step work alone, for dry runs.
//
// What does not belong here: variables and patches (packages variables and patches), deleting the templates of
// MachineDeployments and MachineSets that go away (package templates), checks at admission.
package topology
