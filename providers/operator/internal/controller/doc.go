// Package controller reconciles provider objects: one controller per kind, all with the same steps.
//
//	adopt      adds the finalizer
//	stop       scales the Deployments of a paused provider to zero
//	preflight  checks the spec, and that it fits the other providers
//	release    finds the release; a version that is not set is written to the spec
//	install    writes the components if they are not as the spec demands
//
// Deletion:
//
//	unused     waits until no Cluster, and for the core provider no other provider, needs the provider
//	remove     deletes the components, and removes the finalizer
//
// Report:
//
//	available  reports whether the Deployments are available
//	observe    records the generation that the conditions are about
//
// A provider whose components were compared with the spec by this process, and whose objects have not changed since, costs no
// request. Decisions on writes are in package engine.
package controller
