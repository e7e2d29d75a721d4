// Package clusterclass defaults and validates ClusterClasses on admission.
//
// The rules are in the topology packages (check, variables, patches). This package decides which of them apply to a request, and
// reads what they require.
package clusterclass
