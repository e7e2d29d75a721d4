// Package scope tests which objects the managers touch: with --watch-filter only those that carry the label, whatever event
// leads to them, and with --namespace only those of one namespace.
//
// The managers run as they do in their programs, flags included, against a real API server. Every request that they send is
// seen on its way. What belongs here: tests that all managers pass. What a single controller does is tested beside it.
package scope
