// Package install writes a provider's objects to a management cluster and waits until its controllers run.
//
// It knows how to write one object or a list of them safely, again and again; which objects, and in which order
// providers follow each other, is its callers' matter.
package install
