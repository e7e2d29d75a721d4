// Package upgrade has the commands of `clusterctl upgrade`, one file each: they show the versions that installed providers can be
// upgraded to, and upgrade the providers and the operator of a management cluster.
package upgrade
