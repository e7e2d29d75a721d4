// Package campaign executes runs: one scenario with one or more faults each. Each scenario starts with a baseline run,
// without faults. It determines the writes at which faults can be injected, and the expected final state.
//
// What belongs here: the sequence of a run, and which runs there are. What does not: the environment (package world), and
// checking invariants (package invariant).
package campaign
