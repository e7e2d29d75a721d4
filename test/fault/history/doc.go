// Package history records every revision of every object in a namespace, with its own watches, which bypass the managers'
// proxies.
//
// All resource versions of an API server come from one counter of its storage. Sorted by resource version, the events of all
// kinds are therefore in the order in which they happened, and a Timeline has the state at every revision. Rules that hold
// at any time (package invariant) are checked on a complete Timeline instead of on events as they arrive, because watches of
// different kinds deliver in any order.
//
// What belongs here: recording, and the state at a revision. What does not: which states are correct.
package history
