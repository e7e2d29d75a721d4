// Package importpaths builds programs that import what Cluster API offers to programs of others, at the paths of v1.7 and at those of v1.11
// and later, each in a module of its own, and runs them.
//
// What does not belong here: what the packages do.
package importpaths
