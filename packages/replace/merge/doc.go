// Package merge computes what to write when an object of a provider is replaced by that of another version.
//
// Everything is replaced except what other clients own: the API server, controllers, and users, who add labels, annotations and
// finalizers. All functions are pure.
package merge
