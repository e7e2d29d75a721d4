// Package recordedcluster stores Clusters that another version of Cluster API has written (package recorded) in the etcd of a running
// capi, as if that version had been stopped a moment ago. Journeys and the fault harness let our managers take them over.
//
//	storage.go  reads and writes what an API server stores
//	copy.go     copies a recorded Cluster for another namespace
//
// What belongs here: making the Cluster exist. What does not: reading the records (package recorded), and what managers make of it.
package recordedcluster
