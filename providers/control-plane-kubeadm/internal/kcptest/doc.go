// Package kcptest is shared by the tests of the packages next to it.
//
//	world.go     a control plane with its Machines on an API server in memory
//	workload.go  a workload cluster in memory
//	slow.go      workload clusters that are unresponsive or slow
//
// It must not import the packages that use it, apart from snapshot and quorum.
package kcptest
