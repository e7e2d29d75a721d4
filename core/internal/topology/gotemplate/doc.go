// Package gotemplate executes the Go templates of ClusterClasses with bounded work and memory. Whoever may write a
// ClusterClass or a Cluster decides what runs in the process that manages everybody's clusters, and text/template can
// neither be interrupted nor limited.
//
// Every execution has a budget of work. What a template does is charged against it before it happens where that can be
// told beforehand, and right after it otherwise:
//
//   - functions by the size of their arguments and results; those that can make much of little (repeat, until, printf
//     with a width, replace, regular expressions) by what they are about to make;
//   - each turn of a loop and each call of another template by the size of its body: Parse puts a call that charges for
//     it into the parse tree;
//   - output by its length, which has a limit of its own.
//
// Parse limits the size of the source, and Execute how deep templates call each other. Work is counted rather than timed,
// so that a template either always works or never does.
//
// Functions whose result is not determined by their arguments do not exist, because a topology would never come to rest
// with them: no time, no randomness, no environment, no network.
//
// What belongs here: everything that executes a template of a class. What does not: where templates are used and what
// values they see.
package gotemplate
