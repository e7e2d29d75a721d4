// Package classes has what everything that reads ClusterClasses shares: which Clusters use a class, and values that are computed from a
// class once for all of its Clusters, such as compiled patches and variables.
//
// What does not belong here: the values.
package classes
