// Package rollout restarts, pauses, resumes and undoes rollouts of MachineDeployments and KubeadmControlPlanes, and
// pauses and resumes ClusterRollouts, for `clusterctl rollout`.
//
// Each operation is one patch of one object. It only applies to the version of the object that the rules were checked
// against: if a controller or user changes the object in between, the object is read and checked again. So an operation
// that is interrupted has either happened or not, and running it again has the documented result for the object as it
// then is.
package rollout
