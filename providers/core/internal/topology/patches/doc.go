// Package patches applies the patches of a ClusterClass to its templates, for one Cluster.
//
// An Engine is compiled from the patches of a class and used for all Clusters of that class. Apply reads a Cluster, the
// templates of its class and the desired objects of the Cluster; it applies the patches to the templates in the order of the
// class, and writes the resulting specs into the objects. Inline patches (JSON patches with values, variables and Go templates)
// are computed here; external patches by an Extension.
//
// Everything here is pure, except for Extensions. What does not belong here: which objects a Cluster has, at which version (the
// topology controller), which values of variables are valid (package variables), how objects are written.
package patches
