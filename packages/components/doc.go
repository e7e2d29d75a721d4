// Package components turns a provider's published manifests into the objects that are installed for it.
//
// Everything here is a pure function of its input. Package repository downloads manifests; package apply writes
// objects.
package components
