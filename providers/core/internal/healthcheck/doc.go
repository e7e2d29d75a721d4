// Package healthcheck reconciles MachineHealthChecks: it finds unhealthy Machines, and requests their remediation.
//
// The steps, in order, and what each guarantees:
//
//	cluster   the Cluster exists, and is not being deleted
//	adopt     the MachineHealthCheck has the cluster name label and the Cluster as owner
//	diagnose  Machines and Nodes are read from the caches, and each Machine is diagnosed
//	confirm   if remediations begin or end, everything was read again from the API servers, and the diagnosis is that of the result
//	mark      the conditions of the Machines report the diagnosis, and request remediation from their owners
//	request   external requests exist for the unhealthy Machines, and not for healthy ones, if there is a template for them
//
// Last:
//
//	status    counters, targets and condition RemediationAllowed are those of the diagnosis
//
// Nothing is remediated because of cached objects: a stale cache may lack Machines that are already being replaced, or Nodes that have
// failed or recovered meanwhile. Before the conditions of a Machine change, except for the first one of a healthy Machine, the
// MachineHealthCheck, its Cluster, all its Machines and all Nodes are read from the API servers, and only what was read there counts. The
// writes require the Machine as it was read. So several leaders with different caches come to the same result.
//
// While the API server of the workload cluster is unreachable, the Nodes are unknown. Then only Machines that a user has
// annotated are remediated, the counters are kept, and condition RemediationAllowed reports it.
//
// While too many Clusters or Machines of the whole management cluster are unhealthy, no remediation begins: fleet.go counts them in the
// cache, when one is about to begin.
//
// Timers are exact: the next reconcile is due when the next condition has lasted long enough.
//
// Package diagnosis decides; this package reads and writes. The Machines' owners remediate: MachineSets, MachinePools, control planes.
package healthcheck
