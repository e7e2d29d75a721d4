// Package machines creates, updates in place and deletes the Machines of a control plane.
//
//	create.go     creates a Machine with its KubeadmConfig and infrastructure machine
//	config.go     the KubeadmConfig of a Machine
//	complete.go   creates what is missing after an interruption
//	propagate.go  updates labels, annotations and timeouts according to the template, without a rollout
//	update.go     updates a Machine in place with an extension, instead of replacing it
//	delete.go     deletes a Machine
//
// Which Machine is created or deleted, and when, is decided in packages scale and remediation.
package machines
