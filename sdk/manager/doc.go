// Package manager is the skeleton of all controller managers: flags, the connection to the API server,
// leader election, webhook certificates, health and diagnostics, and the order in which they start.
//
// A program describes itself as a Component and calls Main. A process that holds several components calls Run for
// each, with a Host that replaces what would otherwise belong to the process: credentials, listeners, environment, log.
//
//	component.go    what a component declares, and what it is passed
//	host.go         what a process with several components replaces
//	main.go         the process of one component
//	run.go          one run, from the arguments to the end: read this first
//	flags.go        the flags of all managers; validate.go validates them
//	connection.go   API server, namespace, lowest Kubernetes version
//	build.go        the controller-runtime manager, its cache and client; secrets.go reads Secrets
//	election.go     leader election, and the end of a leader's writes
//	endpoints.go    health, diagnostics, profiler; certificates.go selects the webhook server's certificate
//
// Controllers do not belong here, and neither does anything that only one component needs.
package manager
