// Package contract reads and writes objects of providers by the v1beta1 contract.
//
// A provider's object is an unstructured object whose fields have agreed paths; a provider's Go types are never
// imported. There is one type per role in the contract (InfrastructureCluster, InfrastructureMachine,
// InfrastructureMachinePool, Bootstrap, ControlPlane, Template), each a thin view on an unstructured object, so
// reading copies nothing that is not asked for. APIVersions finds the version of a provider's kind that
// speaks the contract, and Clone makes an object from its template.
//
// A field that is absent or null reads as zero where the contract gives both the same meaning; where it does not, the
// accessor tells them apart by a pointer or by a second result. A field of another type than agreed is an error that
// names the object, the field, what was found and what the contract asks for.
//
// What does not belong here: fetching provider objects (package external), deciding what follows from a value.
package contract
