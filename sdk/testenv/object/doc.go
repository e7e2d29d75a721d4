// Package object builds the objects of tests, one function per kind, for fake and real API servers:
//
//	var build object.Builder // objects of Cluster c in namespace default
//
//	machine := build.Machine("m", object.ControlPlane, func(m *clusterv1.Machine) { m.Spec.ProviderID = &id })
//	infra := object.ControlledBy(build.Provided(kind, "m", object.Fields{"status": object.Fields{"ready": true}}), machine)
//
// Objects are valid, Machines and templates of Machines with Complete. They have the metadata that an API server and core set: UID,
// generation, label of the Cluster. Fake API servers need these; real ones replace them.
//
// What does not belong here: options that only one package uses. Pass a function instead.
package object
