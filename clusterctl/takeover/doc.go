// Package takeover prepares a management cluster for another version of Cluster API, whose managers take over from those of this one.
//
//	plan.go      what the other version does not know, and would wait for or trip over: a pure function
//	read.go      reads the objects of a management cluster that matter for that, metadata only
//	managers.go  reads which managers run
//	apply.go     removes it, object by object; it can be interrupted and repeated
//
// Objects stay as they are otherwise: no Machine is replaced. Starting and stopping managers does not belong here.
package takeover
