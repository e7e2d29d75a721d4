// Package templates deletes the templates of a topology together with the MachineDeployments and MachineSets that use
// them.
//
// A MachineDeployment or MachineSet of a topology has a finalizer. The controller that creates the object sets it at creation;
// otherwise this package adds it. When the object is deleted, this package deletes the templates that it refers to, unless its
// MachineDeployment or a MachineSet of it that is not being deleted refers to them, too. Objects that are deleted at the same
// time do not wait for each other: templates are needed only for new Machines, and they create none.
//
// What does not belong here: creating and rotating templates (package topology).
package templates
