// Package wave decides what a ClusterRollout does next: which Clusters it changes, sets back, and considers done or failed, and when
// there is something to do again. It is a pure function of the strategy, the Clusters with their entries, what the user permits, and the
// time.
//
//	wave.go    the input, and Decide, the table of contents
//	settle.go  what becomes of Clusters that were changed: done, failed, set back
//	stage.go   how far a stage is, and when its soak time ends
//	start.go   which Clusters are changed next
//	phase.go   what is said about it
//
// Reading and writing, and how Clusters are observed, belongs in package rollout.
package wave
