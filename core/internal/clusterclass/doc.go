// Package clusterclass makes ClusterClasses usable.
//
// The controller's steps, in order:
//
//	variables  status.variables has the variables that Clusters of the class may set; condition VariablesReconciled
//	own        the class is an owner of every template that it refers to, so that they move with it; templates that do
//	           not exist yet are awaited, and so are kinds whose provider is not installed yet
//	versions   condition RefVersionsUpToDate says whether all references name the newest version of their kind that
//	           implements the contract; nothing breaks if they do not; it is Unknown while kinds are missing
//	observe    status.observedGeneration says that the class as it is can be used
//
// A class whose status.observedGeneration is its generation can be used for Clusters.
//
// What does not belong here: checking classes at admission, using them.
package clusterclass
