// Package remediation replaces unhealthy Machines, one at a time: it deletes the Machine, and package scale creates the
// replacement.
//
//	remediate.go  selects a Machine and deletes it
//	preflight.go  the checks that must pass first
//	record.go     the record of the remediation in progress, and retries
//
// The remediation in progress is recorded in an annotation of the control plane before the Machine is deleted, and until its
// replacement exists: after an interruption it is continued, and does not count as another one. Which Machines are unhealthy is
// determined by MachineHealthChecks.
package remediation
