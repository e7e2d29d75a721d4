// Package explain finds the root cause of what a Cluster waits for.
//
// Explain is a pure function of the Cluster's objects, the Deployments of the providers and Events; package gather reads
// these with a number of requests that depends on the number of kinds, not on that of Machines.
//
// Each rule finds one sort of cause. The rules are in the order in which causes have consequences, so the first cause that is
// found is the root cause, and the others are listed after it:
//
//	paused          objects that controllers skip, rollouts that are paused
//	operations      a control plane that an operation holds, such as the restore of a backup
//	providers       kinds without CustomResourceDefinition, Deployments that are not available
//	missing         references to objects that do not exist
//	references      objects that break the contract, that others own, or that the managers may not access
//	topology        a class that cannot be applied, lifecycle hooks that block
//	finalizers      deletions that wait for finalizers of other programs
//	failures        terminal failures
//	infrastructure  the infrastructure of the cluster
//	certificates    CAs, Secrets and templates that the control plane lacks; expired certificates; a lost control plane
//	addresses       IPAddressClaims without an address
//	machines        control plane machines that have failed
//	controlPlane    a control plane without Machines that is not ready
//	connection      a workload cluster that does not respond
//	joining         machines and bootstrap data that cannot be provisioned
//	deletions       Machines that cannot be deleted: hooks, drain, volumes, etcd members
//	restricted      MachineHealthChecks that do not allow remediation
//	unhealthy       Nodes, etcd members and control plane components that are not healthy
//	upgrades        upgrades that annotations hold or defer
//	updates         Machines that are updated in place, or wait for readiness gates
//	replicas        Machines that cannot be created
//	resourceSets    manifests that cannot be applied
//	stale           objects that no controller has reconciled
//	progress        what takes its time: provisioning, rolling out, scaling, deleting; then what waits for it
//
// A cause is Blocked if it stays until someone acts. What rules marked as passing find often ends by itself, and is Progressing for a
// minute.
//
// If no rule finds anything, the object at the end of the longest chain that is not ready is the cause. An object is only listed
// once, with its first cause.
//
// Inside a rule, control plane Machines come first, then the oldest object.
package explain
