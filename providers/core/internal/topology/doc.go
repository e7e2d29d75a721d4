// Package topology creates the objects of Clusters that have a topology, and keeps them in line with their ClusterClass.
//
// The controller's steps, in order:
//
//	plan       the plan is computed without writing: the desired objects (package desired), their versions (package upgrade),
//	           what lifecycle hooks hold back (package lifecycle), and how they differ from the current objects
//	confirm    before existing objects are changed or deleted, Cluster and ClusterClass are read from the API server: the
//	           plan must be based on their latest versions
//	reference  the Cluster has its labels, its finalizer, references to infrastructure cluster and control plane, and a record
//	           of the hooks that are still to be called, and of the step of an upgrade by several
//	apply      objects that differ are applied, server-side, as the field manager capi-topology
//	leftovers  templates that an earlier reconcile replaced but did not delete are found
//	prune      workers that were removed from the topology, disabled health checks and unused templates are deleted; whether
//	           a template is unused is checked against the API server, not the cache
//	after-hooks  the lifecycle hooks of what has been completed are called, and the record of an upgrade by several steps ends; while
//	           hooks block, the next call is awaited
//
// Plans are computed from caches, and whether applying an object would change it is decided locally (package ssa), so a Cluster
// that is up to date costs no requests. A template is replaced only if its desired content changed, and if the API server
// confirms in a dry run that applying it would change the template.
//
// Names derive from the Cluster's UID, so the references are written before the objects exist: if the controller crashes
// after any request, deleting the Cluster still finds every object by reference or by owner. Objects have their labels and
// owners from the first request, and applying the same name twice results in one object, so an interrupted reconcile simply
// runs again. Objects are applied in stages: templates and infrastructure cluster, then workers, then control plane and health
// checks. Workers come before the control plane because new workers are created along with a new control plane, but wait while
// an existing one is being provisioned.
//
// While a Cluster is being deleted, only an annotation and a condition are written:
//
//	before-delete  hook BeforeClusterDelete is called; the Cluster controller waits until it does not block
//	deleted    condition TopologyReconciled reports the deletion
//
// The step plan is package plan: it only reads, and clusterctl uses it for predictions, too.
//
// What does not belong here: variables and patches (packages variables and patches), deleting the templates of deleted
// MachineDeployments and MachineSets (package templates), checks at admission.
package topology
