// Package move moves the objects of a namespace from one management cluster to another, so that it can be interrupted after
// any request, and continued by the same command.
//
// The state of a move is in the two clusters, never only in the process:
//
//  1. Lock: a Lease in the source lets one clusterctl at a time move a namespace (package lock).
//  2. Begin: the journals of both clusters (package journal) say whether a move was interrupted, and in which phase. A new
//     move is checked before anything is written (preflight.go).
//  3. Copying: the journals are written. Clusters and ClusterClasses in the source are paused, with the ID of the move in an
//     annotation (package transfer). When no object has the annotation block-move any longer, the objects (packages discovery and
//     graph) are created in the target, owners first (package transfer). The source is read and copied again until nothing has
//     changed.
//  4. Removing: the journals say so before the first removal. Dependents first, each object of the source is marked with a
//     patch that only succeeds in the state that was copied: it gets a label with the ID of the move and the annotation
//     delete-for-move, and loses its finalizers. The marked objects of a kind are deleted with one request. This is repeated
//     until nothing is left.
//  5. Resuming: ClusterClasses and Clusters of the target are resumed, unless they had been paused before the move.
//  6. End: the journals are deleted, that of the source last, then the Lease.
//
// Each object exists completely on at least one side at any time: it is only marked when the target has it. At no time do both
// sides reconcile: the target is paused until nothing is left in the source.
//
// ClusterClasses that namespaces share are created in the target with their templates if it does not have them. They are neither paused nor
// removed.
//
// A move to a directory has the phases Copying and Resuming, of the source. What a directory contains is created in a cluster
// in any number of attempts, without a journal.
//
// What a user sees and types belongs to package command/move.
package move
