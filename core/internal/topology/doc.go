// Package topology makes the objects of Clusters that have a topology, and keeps them as their ClusterClass says.
//
// The controller's steps, in order:
//
//   - plan: works out, without writing, what the Cluster is to have (package desired) at which version (package
//     upgrade) and what of that is not there yet. Everything is read from caches. Whether applying an object would
//     change it is decided locally (package ssa), so a Cluster that is as it should be costs no request at all. A
//     template is replaced only if what is wanted of it changed, and if the API server confirms in a dry run that applying
//     it would change the template.
//   - confirm: before anything that exists is changed or deleted, makes sure that Cluster and ClusterClass are still what
//     the plan was made of. The cache may be a minute old, and another leader may have acted on newer ones.
//   - refer: puts labels, finalizer and the references to the infrastructure cluster and the control plane into the
//     Cluster, in one patch. Names derive from the Cluster's UID, so the references are written before the objects
//     exist: whoever deletes the Cluster after a crash at any request finds everything, by reference or by owner.
//   - apply: applies what differs, server-side, as the field manager capi-topology: templates and the infrastructure
//     cluster, then workers, then the control plane and the health checks. Objects have their labels and owners from
//     the first request on. Applying the same name twice ends in one object, so an interrupted reconcile simply
//     starts over; no other object is needed to own things in between. The control plane comes last, because workers
//     that do not exist yet wait for a control plane that is being provisioned, but not for one that is not there.
//   - leftovers: finds templates that were rotated away and not deleted then.
//   - prune: deletes workers that left the topology, health checks that were switched off, and templates that were
//     rotated away and that nothing uses, which is decided on a live view.
//
// A Planner does the first step alone, for whoever wants to know what would happen.
//
// Around a Cluster that is being deleted the controller does nothing.
//
// What does not belong here: variables and patches (packages variables and patches), deleting the templates of
// MachineDeployments and MachineSets that go away (package templates), checks at admission.
package topology
