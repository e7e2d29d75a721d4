// Package world starts what runs take place in: one API server, the managers as processes that can be killed, a proxy
// before each of them, and the record of everything that happens.
//
// What belongs here: starting, stopping, and namespaces. What does not: what happens in a run (package campaign).
package world
