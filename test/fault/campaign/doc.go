// Package campaign makes runs: one scenario with some faults each. A calm run of a scenario comes first; it tells what is
// written, which is where faults can be put, and what the end looks like.
//
// What belongs here: the course of a run, and which runs there are. What does not: what they take place in (package
// world), and judging them (package invariant).
package campaign
