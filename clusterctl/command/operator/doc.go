// Package operator has the commands `clusterctl operator` init, preload, publish, delete and upgrade apply, one file each.
package operator
