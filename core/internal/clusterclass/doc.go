// Package clusterclass makes ClusterClasses usable.
//
// The controller's steps, in order:
//
//   - variables: collects the variables that Clusters of the class may set into status.variables, and says so in the
//     condition VariablesReconciled.
//   - own: makes the class an owner of every template that it refers to, so that they move with it. Templates that
//     do not exist yet are awaited, and so are kinds whose provider is not installed yet.
//   - versions: says in the condition RefVersionsUpToDate whether all references name the newest version of their kind
//     that speaks the contract. Nothing breaks if they do not. It is Unknown while kinds are missing, and says which.
//
// A class whose status.observedGeneration is its generation can be used for Clusters.
//
// What does not belong here: checking classes at admission, using them.
package clusterclass
