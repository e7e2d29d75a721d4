// Package condition sets, compares and derives v1beta1 conditions: summaries, aggregates of several objects, and mirrors of the
// condition of another object.
//
// Steps of a controller set conditions with Set, without transition times, and never set Ready. A Kind declares which conditions of a
// kind make up its Ready; Kind.Summarize sets it at the end of a reconcile. Nothing here does I/O or is specific to one kind.
package condition
