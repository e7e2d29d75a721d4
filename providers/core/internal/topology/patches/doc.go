// Package patches applies the patches of a ClusterClass to its templates, for one Cluster.
//
// An Engine is compiled from the patches of a class and used for all Clusters of that class. Apply reads a Cluster, the
// templates of its class and the desired objects of the Cluster; it applies the patches to the templates in the order of the
// class, and writes the resulting specs, labels and annotations into the objects. Inline patches (JSON patches with values,
// variables and Go templates) are computed here; external patches by an Extension.
//
// Inline patches are applied to decoded templates by pointer.go, and patches of extensions by document.go, not by
// github.com/evanphx/json-patch, which is compared with both in fuzz tests. It patches bytes: ten patches of a template of 5 KiB take
// 3 ms and 600 KiB of memory with it, and 25 µs and 12 KiB here, for each template of each Cluster, and its work cannot be limited. It
// accepts indexes that RFC 6901 does not, such as 00 and +1, and that admission takes for names of fields. And its errors do not name
// the part of the path that does not exist.
//
// Everything here is pure, except for Extensions. What does not belong here: which objects a Cluster has, at which version (the
// topology controller), which values of variables are valid (package variables), how objects are written.
package patches
