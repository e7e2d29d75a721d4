// Package check tells what our managers would write in a management cluster that other managers run, before they do: it copies the
// management cluster, runs our managers over the copy, and compares.
//
//	check.go        Run: the order of everything
//	read.go         reads the management cluster: Deployments of managers, Secrets of Clusters
//	permissions.go  ServiceAccounts and their roles
//	webhooks.go     webhooks, and the certificate with which they are served in the copy
//	definitions.go  definitions, all their objects, and in which version
//	servers.go      the addresses of workload clusters
//	facts.go        what is noted of the objects meanwhile
//	storage.go      writes objects into the storage of the copy as they are, and reads what was written
//	managers.go     our managers in the copy: what they may not do, and what they say
//	workloads.go    their connections to workload clusters, which only read
//	quiet.go        waits until they have nothing more to do
//	result.go       which differences are writes, and which are not computed
//	notes.go        what else may matter
//	print.go        as text and as JSON
//
// Nothing is written anywhere else: see package readonly. The copy is an API server in this process, with the definitions, objects,
// permissions and webhooks of the user; managers of infrastructure do not run, so that their objects stay as they are.
//
// How the result is requested and printed belongs to package command.
package check
