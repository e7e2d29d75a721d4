// Package inplace is what owners of Machines and the Machine controller have in common to update Machines in place, with extensions of the
// Runtime SDK: the marks on objects, and the question whether an extension can make a change.
//
//	marks.go  what the marks on a Machine and its objects mean
//	moves.go  what the marks on MachineSets mean whose Machines move from one to the other, and on these Machines
//	ask.go    asks the hook CanUpdateMachine, and compares what the answer leads to with what is desired; asksets.go: CanUpdateMachineSet
//	overlay.go  the desired object of a Machine, from a new one
//
// An update goes through the marks in this order; each line is one request, after which everyone may be killed:
//
//	the owner               marks the Machine as being updated
//	the owner               writes infrastructure machine, bootstrap config and Machine as desired, each with the mark
//	the owner               marks the hook UpdateMachine of the Machine as pending
//	the Machine controller  calls the hook until the update is complete
//	the Machine controller  removes the marks of infrastructure machine and bootstrap config, then those of the Machine
//
// A MachineDeployment has a MachineSet per template, so that its Machines move before their owner writes what is desired:
//
//	the MachineDeployment   marks the new MachineSet as receiving Machines of old ones, and these as moving them, with less replicas
//	the old MachineSet      makes the new one the controller of as many Machines, marked as moved and as being updated
//	the MachineDeployment   raises the replicas of the new MachineSet, and lists the Machines that it has counted in an annotation
//	the new MachineSet      removes the mark of a move from these, and continues as the owner above
//
// v1.12 and later use the same marks, so that either continues what the other has begun. Which Machines are updated, and the calls of
// UpdateMachine, do not belong here.
package inplace
