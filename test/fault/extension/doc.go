// Package extension is the runtime extension of scenarios with lifecycle hooks: it has a handler for each of them, records every call in
// ConfigMap Record of the Cluster's namespace before it answers, and blocks while the ConfigMap demands it. So calls, answers and what
// the managers did are in one history, in the order in which they happened.
//
// What belongs here: the server, and the content of the ConfigMap. What does not: when something blocks (package scenario), and what may
// not happen meanwhile (package invariant).
package extension
