// Package classes has what everything that reads ClusterClasses shares: which Clusters use a class, and values that are computed from a
// class once for all of its Clusters, such as compiled patches and variables. Elsewhere reads the classes that a manager of one namespace
// does not have in its cache.
//
// What does not belong here: the values.
package classes
