// Package templates deletes the templates of a topology together with the MachineDeployments and MachineSets that use
// them.
//
// A MachineDeployment or MachineSet of a topology has a finalizer. Whoever makes it sets the finalizer at creation;
// for others it is added here. When one is deleted, the templates it refers to go with it unless a MachineSet that
// stays, or the MachineDeployment that stays, refers to them too. Several that are deleted at the same time do not
// wait for each other: templates are needed for new Machines only, and none of them makes any.
//
// What does not belong here: making templates and rotating them (package topology).
package templates
