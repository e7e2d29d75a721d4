// Package generate has the commands of `clusterctl generate`, one file each.
package generate
