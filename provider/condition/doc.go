// Package condition is the algebra of v1beta1 conditions: stating one, comparing two, and computing those
// that are derived from others (a summary, an aggregate over children, a mirror of another object).
//
// Steps of a controller state facts with Set; they never stamp times and never compute Ready. Which
// conditions a kind has, and which of them feed its Ready, is declared once as a Kind, and Kind.Conclude
// derives the rest when a reconcile commits. What belongs here is free of I/O and of any single kind.
package condition
