// Package core converts kinds of the API group cluster.x-k8s.io between v1beta1 and v1beta2, without loss in both directions.
//
// What belongs here: mapping fields, and keeping what the other version has no field for. What does not: serving conversion requests
// of API servers, and defaulting.
//
// An object that the other version cannot represent completely gets an annotation with the object itself, as JSON without metadata.
// When it is converted back, changes that were made in between are applied to that object (merge.go).
package core
