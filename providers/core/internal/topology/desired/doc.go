// Package desired computes the desired objects of a Cluster with a topology.
//
// Compute is a pure function of the Cluster, its class with all templates (Blueprint), the current objects (Current) and the
// versions that each part gets now (package upgrade). Names of new objects derive from the UID of the Cluster and the purpose
// of the object, so that computing them again gives the same objects; existing objects keep their names. Rotate then renames
// every template whose spec would change, because templates are immutable.
//
// What does not belong here: reading and writing objects, when a part gets which version, patches.
package desired
