// Package world starts the environment of runs: one API server, the managers, or only the operator, as processes that can be
// killed, a proxy for each of them, and a recorder.
//
// What belongs here: starting, stopping, and namespaces. What does not: what happens in a run (package campaign).
package world
