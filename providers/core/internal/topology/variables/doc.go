// Package variables implements the variables of ClusterClasses: it validates definitions, merges them into status.variables,
// and defaults and validates the values that Clusters set.
//
// All functions are pure: no API requests, no clock, no logging. The use of values in templates belongs in package patches.
// Callers decide whether a class is ready to be used.
package variables
