// Package migrator is the controller that migrates the objects of a manager's own CustomResourceDefinitions: they are stored in the
// version in which new ones are, and no field manager depends on a version that is no longer served. Then versions can be removed.
//
// The steps, in order. Each can be interrupted at any request, and continues when it runs again:
//
//	definition  reads the definition, which is cached without its versions, and decides what is due
//	noticed     waits until API servers store new objects in the version of the definition
//	objects     patches each object, in pages; those that cannot be saved do not keep the others
//	record      status.storedVersions of the definition has no other version
//	mark        an annotation of the definition has its generation, so that nothing is due until the definition changes
//
// A definition with the mark of its generation costs no requests. The mark is only set if no phase was skipped that may have been due.
//
// Which versions a definition has and stores is decided by who installs it, and does not belong here.
package migrator
