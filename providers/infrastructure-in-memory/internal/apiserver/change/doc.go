// Package change computes changes of objects: it applies patches, merges applied configurations, and tracks the managers of fields.
//
// It stores nothing.
package change
