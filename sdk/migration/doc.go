// Package migration stores the objects of a CustomResourceDefinition again, in the version in which it stores new ones, so that other
// versions can be removed.
//
//	definition.go  in which versions objects may be stored
//	pass.go        goes once through all objects, and may be interrupted at any request
//	fields.go      what field managers have set in versions that are no longer served
//
// The controller that migrates in managers is in package manager, and what clusterctl migrates in its package storageversion. When to
// migrate does not belong here.
package migration
