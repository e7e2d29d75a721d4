// Package ssa applies objects server-side, and only sends requests that may change something.
//
// Controllers use server-side apply for objects that other clients write, too. To find out whether an apply would change anything
// usually takes a dry-run request per object and reconcile. But the live object has that information: its fields, its managedFields,
// and the schema of its kind. Plan computes it, with the same schema and merge library as the API server, so that in a steady state
// nothing is sent.
//
// If Plan finds no change, an apply with force would leave the object's fields as they are, and the field manager's ownership, too, apart
// from fields that it would own besides others: the object of another version of Cluster API, which applied less, is not written for
// that. The converse does not hold if mutating webhooks change what is applied; then one request is sent, and Applier remembers its result
// until one of the sides changes. Applier also remembers comparisons without a difference: repeating one, the most frequent case in a
// steady state, only costs the encoding of the desired object.
//
// Live objects must have metadata.managedFields, at least the entries of the field manager: with a cache that drops them, every apply
// is a request.
//
// With the client of an apiversion.Boundary, objects are compared and applied in the version that is stored: callers pass and get theirs.
//
// What does not belong here: computing desired objects, and kinds without a CustomResourceDefinition.
package ssa
