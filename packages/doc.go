// Package packages names the things clusterctl and the operator install: provider types, the providers known without
// configuration, and how a user refers to one of them.
//
// Where a provider is published is package repository's matter, what its manifests contain package components', and
// what is installed in a management cluster package inventory's.
package packages
