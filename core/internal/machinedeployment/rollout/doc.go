// Package rollout decides how many machines each MachineSet of a MachineDeployment should have.
//
// It is pure arithmetic over what was observed: one call is one move, and the moves follow from each other as
// machines come up and go away. Finding out which MachineSet is the new one, and writing what was decided,
// belongs to the controller.
package rollout
