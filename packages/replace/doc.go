// Package replace replaces the objects of one version of a provider by those of another in a running management cluster.
//
//	upgrade.go  Upgrade: from the installed version to another; what is rejected
//	rollback.go RollBack: undoes an interrupted or failed upgrade
//	execute.go  executes the stages of a plan
//	object.go   writes one object
//	await.go    waits for Deployments, unless they will not start
//	webhook.go  replaces webhook configurations without rejecting requests
//	stage       what is done, and in which order: a pure function
//	merge       what is written: pure functions
//	journal     the previous objects, in Secrets of the provider's namespace
//
// An upgrade that is killed after any request is continued, or rolled back, by the next run: the journal is written before the
// first change and deleted after the last one, and every step can be repeated. Objects of users, Namespaces and
// CustomResourceDefinitions are never deleted, with one exception: a roll-back deletes the CustomResourceDefinitions that only
// the new version had, if there are no objects of their kinds.
//
// Package replace does not choose versions and does not download; that is the caller's part.
package replace
