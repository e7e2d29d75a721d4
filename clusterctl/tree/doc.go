// Package tree shows the objects of one Cluster as a tree: who belongs to whom, and what state each is in.
//
// Build turns a set of objects into a tree, Write turns a tree into a table. Both are pure: which objects are needed is
// said by Selections, and reading them is the matter of package tree/snapshot.
package tree
