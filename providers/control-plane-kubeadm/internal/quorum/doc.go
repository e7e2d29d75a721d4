// Package quorum computes whether members can be removed from an etcd cluster without losing its quorum.
//
// All functions are pure. Querying members belongs in package workload, and removing them in package membership.
package quorum
