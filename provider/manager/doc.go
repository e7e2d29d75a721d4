// Package manager is everything that our controller managers have in common: flags, the connection to the API server,
// leader election, webhook certificates, health and diagnostics, and the order in which they start.
//
// A program describes itself as a Component and calls Main. A process that holds several components calls Run for
// each and replaces, by a Host, what would otherwise be the process's own: identity, listeners, environment, log.
//
//	component.go    what a component says about itself, and what it learns about its run
//	host.go         what a process with several components replaces
//	main.go         the process of one component
//	run.go          one run, from arguments to the end: read this first
//	flags.go        the flags that all managers have; validate.go what they may be
//	connection.go   API server, namespace, lowest Kubernetes version
//	build.go        the controller-runtime manager, its cache and client; secrets.go how it reads Secrets
//	endpoints.go    health, diagnostics, profiler; certificates.go which certificate the webhook server shows
//
// What a component reconciles does not belong here, and neither does anything that only one of them needs.
package manager
