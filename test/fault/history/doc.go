// Package history records every revision of every object of a namespace, as the API server had them, from watches of its
// own that no manager's proxy is part of.
//
// All resource versions of an API server come from one counter of its storage. So the events of all kinds, sorted by
// resource version, are what happened, in the order it happened, and a Timeline says what there was at every revision.
// Rules about "at any moment" (package invariant) are checked on a Timeline that is complete, not while events arrive: they
// cannot be deceived by the order in which watches deliver.
//
// What belongs here: recording, and the state at a revision. What does not: what is right and wrong.
package history
