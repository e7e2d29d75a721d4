// Package lossless converts objects of a kind between two versions, the hub, in which they are stored, and a spoke, so that
// nothing is lost in either direction.
//
// What a version cannot express is kept in an annotation: an object of the spoke has the spec and the status of the hub in it, if they
// have more than the spoke can express; one of the hub has the fields of its spec that only the spoke has. These are two annotations,
// because managers of other versions of Cluster API read the first one, and fail unless it has an object of the hub. When an
// object is converted back, a field is restored unless it was changed meanwhile, in the version that it was converted to: each
// conversion computes what the other version showed of the kept data, and compares. So a conversion needs no list of the fields to
// restore.
//
// A kind declares how fields move, as functions over the JSON of an object. Functions for single kinds do not belong here.
package lossless
