// Package apply writes a provider's objects to a management cluster and waits until its controllers run, or finds out why they do not
// (pods.go).
//
// Writes are idempotent. Callers decide which objects to write, and in which order to install providers.
package apply
