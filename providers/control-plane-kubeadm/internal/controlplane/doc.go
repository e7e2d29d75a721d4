// Package controlplane reconciles KubeadmControlPlanes. Every step has a file of its name; what several steps need, and what is
// complex enough to be understood by itself, is in other packages, which know no other steps. In the order of their imports, from
// the lowest:
//
//   - snapshot: the objects in the cache, their comparison with the spec, and checks against the API server
//   - quorum: which members can be removed from etcd
//   - connection: the workload cluster, within limits of time
//   - health: the health of Machines
//   - membership: removes etcd members, and the hook that holds Machines until then
//   - credentials: CAs, service account key and kubeconfig
//   - machines: creates, updates and deletes Machines
//   - remediation: replaces unhealthy Machines
//   - scale: decides on the number of Machines, and changes it
//
// Reading and changing workload clusters belongs in package workload.
//
// The steps, in their order:
//
//	cluster           waits for the Cluster to own the control plane
//	own               saves the finalizer before anything exists that it protects
//	infrastructure    waits for the infrastructure of the Cluster
//	hold              answers an operation that holds the control plane, and removes the answer when it has ended
//	complete          creates what Machines refer to and does not exist, after an interruption (package machines)
//	propagate         updates labels, annotations and timeouts of Machines, and sets our hook (package machines)
//	connect           gets the connection to the workload cluster, if there is one (package connection)
//	initialized       detects that kubeadm init has completed
//	stranded          detects a cluster that has lost all its Machines
//	inspect           sets the conditions of Machines for the health of their components and etcd members (package health)
//	pre-terminate     removes the etcd members of Machines that are being deleted, and then the hook (package membership)
//	orphaned-members  removes etcd members without a Machine (package membership)
//	certificates      creates the CAs and the service account key, unless users provide them (package credentials)
//	endpoint          waits for the address of the API server
//	kubeconfig        creates and renews the admin kubeconfig (package credentials)
//	restore           creates the first Machine of a control plane that an operation restores (package machines)
//	adopt             adopts control plane Machines without a controller
//	remediate         deletes unhealthy Machines, one at a time (package remediation)
//	plan              decides on the next action: initialize, scale up, scale down, or nothing (package scale)
//	scale             takes that action, if its preflight checks pass (package scale)
//	maintain          updates RBAC, kube-proxy and CoreDNS, and records when certificates expire
//
// The steps from complete to orphaned-members do not depend on each other. Each of the steps from certificates to adopt depends
// on the ones before. If one of them does not complete, remediate, plan and scale are skipped: without a CA no Machine can be
// created or replaced, but existing Machines and the workload cluster are maintained. If remediate or scale waits or fails, the
// steps after it are skipped, so maintain follows when all Machines are up to date.
//
// While an operation holds the control plane (package fleet/v1alpha1, docs/adr/0065-operations-hold.md), the steps that change Machines or
// etcd members are skipped: complete, propagate, stranded, pre-terminate, orphaned-members, and all from adopt on. The step restore is
// taken only then.
//
// The steps of a control plane that is being deleted. Those from connect to pre-terminate are taken if there are workers while users
// delete control plane Machines:
//
//	cluster
//	finalizer         stops if the finalizer has been removed
//	hold
//	connect
//	observe           observes the workload cluster
//	pre-terminate
//	workers           waits for the workers of the Cluster: draining their Nodes requires the API server
//	machines          deletes all Machines at once: etcd no longer needs a quorum
//	release           removes the finalizer when all Machines are deleted
//
// Before the first Machine is deleted, and before the finalizer is removed, that is checked against the API server. The last step,
// in both cases:
//
//	report            computes the status from the results of the other steps, and health conditions (health.go)
//
// The step of the controller of Machines without a control plane (orphanedmachine.go):
//
//	remove-hook       removes our hook, so that the Machine can be deleted
//
// Protection of etcd: there is one change of membership at a time. A Machine is deleted before its member is removed, and our
// hook holds it until then, so that after an interruption the same Machine is continued, even if a user has deleted it. Members
// are queried immediately before one of them is removed, and enough healthy ones must remain.
//
// Protection from stale caches: before a Machine is created or deleted, the decision is checked against the API server, and
// deleting a Machine that has changed since is a conflict.
package controlplane
