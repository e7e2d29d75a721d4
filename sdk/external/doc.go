// Package external reads and watches objects of kinds that are only known at run time, from references in Clusters, Machines and
// ClusterClasses.
//
// Objects are unstructured and come from the manager's cache, so that each kind has one informer, however many controllers use it.
// Package contract reads their fields.
package external
