// Package plan computes the desired objects of a Cluster with a topology, and how they differ from the current ones. It only reads: the
// topology controller carries the plan out, and clusterctl predicts with it what the controller will do.
//
// A Planner reads the class with its templates (blueprint.go), compiled once per version of the class (classes.go), and the current
// control plane and workers (current.go). It calls the hooks that hold parts back (hooks.go), decides which part gets which version
// (versions.go, package upgrade), computes the desired objects (package desired), gives changed templates new names
// (templates.go), and compares the result with the live objects (changes.go, references.go, deletions.go). Templates that nothing
// uses any longer are found apart from that (unused.go, users.go).
//
// What does not belong here: writing, and conditions.
package plan
