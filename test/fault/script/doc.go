// Package script says which faults happen in a run: faults as data, with a text form to repeat a run by, and the
// Script, which numbers requests and finds the faults that are due.
//
// What belongs here: what goes wrong and when. What does not: making it go wrong (package proxy).
package script
