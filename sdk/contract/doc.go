// Package contract reads and writes the fields of provider objects that the v1beta1 contract defines.
//
// Provider objects are unstructured; the Go types of providers are never imported. There is one type per role in the contract
// (InfrastructureCluster, InfrastructureMachine, Bootstrap, ControlPlane). They wrap an unstructured object without copying it.
// APIVersions finds the version of a kind that supports the contract, and Clone creates an object from its template.
//
// A field that is absent or null reads as its zero value if the contract does not distinguish them; otherwise the accessor returns a
// pointer or a second result. A field of the wrong type is an error with the object, the field, its type and the expected one.
//
// What does not belong here: reading provider objects from the API server (package external), and decisions.
package contract
