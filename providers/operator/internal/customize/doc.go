// Package customize changes the components of a provider as the spec of its object demands: pure functions.
//
//	customize.go   which Deployment gets which part of the spec
//	manager.go     options of controller managers become arguments
//	deployment.go  fields of Deployments and containers
//	arguments.go   the arguments of a container
//	patch.go       patches of users, which are applied last
//
// Precedence: options of the manager before arguments of containers, except that an argument <kind>-concurrency takes precedence over
// maxConcurrentReconciles. Everything that the spec does not mention stays as it is in the components.
package customize
