// Package host runs provider components inside this process where their Deployments ask for it. To everything that
// talks to the API server it looks like a cluster whose nodes run the Deployment's Pod: the component gets its own
// arguments, environment and ServiceAccount, its webhook Service answers, and the Deployment's status tells the truth.
//
//	host.go       Run: wires the parts below to an API server
//	reconcile.go  starts, replaces and stops instances as Deployments change
//	plan.go       what a Deployment asks for
//	env.go        environment and arguments, as a kubelet computes them
//	instance.go   one running component: restarts with backoff, listeners, end
//	probe.go      readiness, asked of the component itself
//	listener.go   the listeners a component serves on; no port is opened
//	proxy.go      brings the API server's calls to Services to those listeners
//	identity.go   the ServiceAccount's token
//	status.go     the Deployment's status
//
// What the components are, and how they are called, is not this package's business: it is given Programs by the name
// of their image.
package host
