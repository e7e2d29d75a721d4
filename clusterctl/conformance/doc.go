// Package conformance checks the files of a provider's release against the clusterctl provider contract, for developers of
// providers. It reads files only, of a folder or of a repository: it neither connects to a cluster nor runs the provider.
//
// A Finding is one violation, with its file and line. An error prevents users from installing or using the provider; a
// warning deviates from a recommendation.
package conformance
