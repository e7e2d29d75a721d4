// Package operator installs the operator in a management cluster, and declares providers for it.
//
//	manifests.go    the operator of a release, and the one that is installed
//	reference.go    how a user refers to a provider
//	declaration.go  which object declares a provider, and what it needs: variables, a release
//	plan.go         what to declare: checked before anything is written
//	apply.go        writes and waits
//
// What the operator does with the objects is in the folder operator; how releases are read, in packages.
package operator
