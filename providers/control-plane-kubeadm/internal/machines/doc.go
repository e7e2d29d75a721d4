// Package machines creates, updates in place, adopts and deletes the Machines of a control plane.
//
//	create.go     creates a Machine with its KubeadmConfig and infrastructure machine
//	complete.go   creates what is missing after an interruption
//	propagate.go  updates labels, annotations and timeouts according to the template, without a rollout
//	adopt.go      adopts control plane Machines without a controller
//	delete.go     deletes a Machine
//
// Which Machine is created or deleted, and when, is decided in packages scale, remediation and deletion.
package machines
