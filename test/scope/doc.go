// Package scope tests which objects the managers access: with --watch-filter, they write only objects with the label,
// whatever event triggers the reconcile; with --namespace, they access only one namespace.
//
// The managers run as in their programs, including flags, with a real API server. The tests record every request. What
// belongs here: tests for all managers. What does not: tests of a single controller, which are in its package.
package scope
