// Package revision turns ClusterClasses and their templates into immutable revisions, and decides which revisions are deleted. Its
// functions are pure.
//
// A revision is a ClusterClass whose name ends with a hash of what it contains, and which refers to templates whose names end with hashes
// of what they contain. What does not change keeps its name. The names depend on the content alone: not on the namespace, the order of
// keys, the version of this program, or what API servers add to objects.
//
// What does not belong here: reading files, requests.
package revision
