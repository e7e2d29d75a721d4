// Package upgrade decides which Kubernetes version each part of a cluster gets next.
//
// The control plane is upgraded first, then the MachineDeployments, one after another in the order of the topology, and
// independently of them the MachinePools in their order. No upgrade starts while an earlier part is still upgrading. Compute is
// a pure function, so a dry run shows exactly what the controller would do.
//
// Pinned workers have a version of their own. The upgrade of the Cluster neither changes nor waits for them. A higher version of theirs
// waits until the control plane is stable and has it, and until fewer workers are being upgraded than may be at the same time.
//
// An upgrade by several minor versions is a Chain of versions: the control plane gets each of them, and the workers stop only where they
// would become too old for the next one. A Chain is computed from the present versions (Ends), again for each plan: nothing of it is
// stored, so it does not matter which process made the previous step. The Cluster records only the version of the step that has begun.
//
// What does not belong here: reading objects, and everything about them but versions.
package upgrade
