// Package clusterclass defaults and validates ClusterClasses on admission.
//
// The rules themselves are in the topology packages (check, variables, patches). Here it is decided which
// of them a request has to keep, and what has to be read for them.
package clusterclass
