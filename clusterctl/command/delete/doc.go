// Package delete has the commands of `clusterctl delete`: itself, which deletes providers from a management cluster, and its
// subcommand cluster, which deletes a Cluster and waits until all its objects are gone. In which order objects of a Cluster are
// deleted, controllers decide.
package delete
