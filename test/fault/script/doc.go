// Package script defines the faults of a run: faults as data, with a text form for repeating a run, and the Script, which
// numbers requests and finds the faults that are due.
//
// What belongs here: which faults occur, and when; parsing requests by what faults select. What does not: injecting them (package proxy).
package script
