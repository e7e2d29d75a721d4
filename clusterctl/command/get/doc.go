// Package get has the commands of `clusterctl get`, one file each.
package get
