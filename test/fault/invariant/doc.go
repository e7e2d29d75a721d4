// Package invariant says what must hold in every run, whatever goes wrong: rules over the Timeline of a run, each a pure
// function.
//
// What belongs here: rules. What does not: recording what happened (package history).
package invariant
