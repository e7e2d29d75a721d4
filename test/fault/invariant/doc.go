// Package invariant has the rules that must hold in every run, whichever faults occur. Each is a pure function of the Timeline
// of a run.
//
// What belongs here: rules. What does not: recording what happened (package history).
package invariant
