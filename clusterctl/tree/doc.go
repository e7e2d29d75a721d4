// Package tree shows the objects of a Cluster as a tree, with their states.
//
// Build turns a set of objects into a tree, Write turns a tree into a table. Both are pure: Selections returns which
// objects are needed, and package tree/snapshot reads them.
package tree
