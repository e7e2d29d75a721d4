// Package extension is the runtime extension of scenarios with lifecycle hooks and external patches, and the one that updates Machines in
// place. It records every call in
// ConfigMap Record of the Cluster's namespace before it answers, and answers as the ConfigMap demands: a lifecycle hook may
// block; patches may be in a Phase in which they must not have any effect. So calls, answers and what the managers did are in one
// history, in the order in which they happened.
//
// What belongs here: the server, and the content of the ConfigMap. What does not: when something blocks or a phase ends (package scenario),
// and what may not happen meanwhile (package invariant).
package extension
