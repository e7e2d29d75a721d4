// Package desired computes the objects that a Cluster with a topology is to have.
//
// Compute is a pure function of the Cluster, its class with all templates (Blueprint), what there is (Current) and
// the versions that are due (package upgrade). Names of new objects derive from the UID of the Cluster and from what
// the object is for, so that computing them twice gives the same objects; names of existing objects are kept. Rotate
// then gives a new name to every template whose spec would have to change, because templates are immutable.
//
// What does not belong here: reading and writing objects, deciding when a version is due, what patches do.
package desired
