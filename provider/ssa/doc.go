// Package ssa applies objects server-side, and asks the API server only when the answer is not known.
//
// Server-side apply is how controllers state what they want of objects that others write too. Finding out whether an
// apply would change anything usually costs a dry-run request per object and reconcile. The answer is in the live
// object, though: its fields, its managedFields, and the schema of its kind. Plan computes it, with the merge library
// that the API server uses and the same schema, so in a steady state nothing is sent.
//
// What is guaranteed: Plan says "no change" only if an apply with force would leave the object's fields and the field
// manager's ownership as they are. The reverse can fail where the API server changes what is applied in ways that a
// schema does not tell, which is to say in mutating webhooks; then one request is sent, and Applier remembers its
// outcome for as long as neither side changes. Applier also remembers which comparisons found nothing: comparing again
// what is still the same, most of what a steady state does, costs the encoding of what is wanted.
//
// The live object has to carry metadata.managedFields, at least the entries of its own field manager: a cache that
// drops them turns every apply into a request.
//
// What does not belong here: computing what is wanted, kinds that are not defined by a CustomResourceDefinition.
package ssa
