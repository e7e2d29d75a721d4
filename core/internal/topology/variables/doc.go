// Package variables knows the variables of a ClusterClass: which definitions are valid, what a class offers
// in status.variables, and how the values a Cluster sets are completed with defaults and checked.
//
// All of it is pure: no API requests, no clock, no logging. What a value does to a template belongs in
// package patches; when a class is ready to be used belongs to its callers.
package variables
