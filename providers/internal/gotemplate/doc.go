// Package gotemplate executes the Go templates of users with bounded work and memory. Everyone who can write a ClusterClass, a
// Cluster or the ConfigMap of a load balancer can run templates in a manager, which serves all tenants, and text/template can
// neither be interrupted nor limited.
//
// Every execution has a budget of work. Work is charged in advance if its amount can be predicted, and right after it
// otherwise:
//
//   - functions by the size of their arguments and results; functions whose results can be much larger than their arguments
//     (repeat, until, printf with a width, replace, regular expressions) by the predicted size of the result;
//   - each iteration of a loop and each call of another template by the size of its body: Parse inserts a call that
//     charges for it into the parse tree;
//   - output by its length, which also has a limit of its own.
//
// Parse limits the size of the source, and Execute the depth of calls between templates. Work is counted, not timed, so that
// a template either always succeeds or always fails.
//
// Functions that are not deterministic are not available, because a topology that uses them would change with every reconcile:
// no time, no randomness, no environment, no network.
//
// What belongs here: everything that executes a template of a user. What does not: where templates are used, and their data.
package gotemplate
