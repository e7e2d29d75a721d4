// Package patches applies the patches of a ClusterClass to its templates, for one Cluster.
//
// An Engine is compiled from the patches of a class and used for every Cluster of that class. Apply
// reads a Cluster, the templates of its class and the objects the Cluster should have; it runs the
// patches over the templates in the order of the class, and puts the specs that result into the
// objects. Inline patches (JSON patches with values, variables and Go templates) are computed here;
// external ones are asked of an Extension.
//
// Everything here is pure but for what an Extension does. What belongs elsewhere: which objects a
// Cluster should have and at which version (the topology controller), which values of variables are
// valid (package variables), how objects are written.
package patches
