// Package host runs provider components inside this process, as specified by their Deployments. To clients of the API
// server it looks like a cluster whose Nodes run the Deployment's Pod: the component gets its arguments, environment and
// ServiceAccount, its webhook Service works, and the Deployment's status is accurate.
//
//	host.go       Run: wires the parts below to an API server
//	reconcile.go  starts, replaces and stops instances as Deployments change
//	orphan.go     components whose Deployment was deleted without them
//	rollout.go    in which order: the new instance serves before the old one stops, a pure function
//	plan.go       what a Deployment specifies
//	env.go        environment and arguments, as a kubelet computes them
//	instance.go   one running component: restarts with backoff, listeners, shutdown
//	probe.go      readiness probes
//	listener.go   the listeners that a component serves on, without opening ports
//	proxy.go      forwards the API server's calls to Services to those listeners
//	identity.go   the ServiceAccount's token
//	status.go     the Deployment's status
//	replicaset.go its ReplicaSet, for tools that look for it
//
// Two instances of a component run during a rollout. Both serve webhooks, health checks and metrics; only one of them
// reconciles and writes files, because the new one waits in Process.Lead until the old one has ended.
//
// Callers provide the components as Programs, by image name.
package host
