// Package clusterclass reconciles ClusterClasses, so that Clusters can use them.
//
// The controller's steps, in order:
//
//	variables  status.variables has the variables that Clusters of the class can set; condition VariablesReconciled
//	own        the class is an owner of every template that it refers to, so that they are moved with it; it waits for
//	           templates that do not exist, and for kinds whose provider is not installed
//	versions   condition RefVersionsUpToDate reports whether all references have the newest API version of their kind that
//	           implements the contract; older versions still work; it is Unknown while kinds are not installed
//	observe    status.observedGeneration is the generation of the class
//
// Clusters can use a class if its status.observedGeneration is its generation.
//
// What does not belong here: validation at admission, the use of classes.
package clusterclass
