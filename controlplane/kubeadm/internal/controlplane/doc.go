// Package controlplane reconciles KubeadmControlPlanes.
//
// The steps, in their order and each in a file of its name:
//
//	cluster      the Cluster that owns the control plane is known
//	own          the finalizer is in the API server before anything exists that it protects
//	infrastructure  the Cluster's infrastructure is ready
//	certificates the Secrets that certificates come from exist; what users brought is not touched
//	endpoint     the address of the API server is known
//	kubeconfig   the admin kubeconfig exists and lasts half a year at least
//	adopt        control plane Machines without a controller belong to the control plane
//	provided     all that Machines need is there
//	complete     everything that a Machine refers to exists (written by create, finished here after a crash)
//	sync         labels, annotations and timeouts of Machines are those of the template, without a rollout; Machines
//	             that somebody else made have our pre-terminate hook (hook.go)
//	connect      the connection to the workload cluster is there, or it is known since when it is not (patience.go)
//	initialised  status.initialized tells whether kubeadm init has completed
//	stranded     a cluster that has lost all its Machines is not initialised again, and says so
//	inspect      conditions of Machines tell the health of their components and etcd members (health.go judges)
//	terminate    members of Machines that are being deleted leave etcd, then the Machines may go (leave.go)
//	prune        members without a machine are removed
//	remediate    Machines that health checks found unhealthy are deleted, one at a time
//	act          the next action of package plan is taken: create.go makes a Machine, remove.go deletes one
//	maintain     RBAC, kube-proxy, CoreDNS and the expiry of certificates are looked after
//
// A control plane that is being deleted takes
//
//	cluster      as above
//	delete       the Machines are deleted once no worker is left; it includes terminate while workers are left
//
// and last, in both cases,
//
//	report       the status is computed from what the steps found
//
// A step that fails stops what needs it: without certificates no Machine is made, but those that are there are cared for.
// What control planes that were removed by force leave behind is for unattended.go.
//
// What protects etcd: one Machine at a time; a Machine is deleted first, and a hook of ours holds it until its member has
// handed over leadership and left, whoever deleted it, so that an interruption at any point is continued with the same
// Machine. Members are asked immediately before one of them is removed, and enough healthy ones must remain.
//
// What protects from old caches: what makes or deletes a Machine is confirmed by live reads (confirm.go), and a Machine is
// deleted only as it was read.
//
// How a workload cluster is read and changed does not belong here but in package workload, and neither does the choice of
// the next action (package plan) or the comparison of a Machine with the spec (package outdated).
package controlplane
