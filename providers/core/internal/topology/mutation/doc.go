// Package mutation calls runtime extensions for the external patches of ClusterClasses: GeneratePatches and ValidateTopology for Clusters,
// DiscoverVariables for classes.
//
// Answers to GeneratePatches and ValidateTopology are used again for the same request, handler, settings and version of the ExtensionConfig:
// five minutes, or, if the ExtensionConfig promises that they depend on nothing else, until one of these changes. Those to DiscoverVariables
// are used again in the same way for the same generation of the class. So extensions are not called while a topology or a class is
// reconciled, but nothing changes in it.
//
// Patches must be deterministic: otherwise each reconcile would replace templates, and with them Machines. An answer that is
// not known for its request is asked for again at once, unless the Cluster is only being created; if the two lead to different templates,
// that is an error with the name of the extension, and nothing is changed.
//
// A failed call that is ignored, because the failure policy of the extension says so, is not an answer: the last patches for the same request
// are used, if there are any, and the next reconcile calls again.
//
// What does not belong here: when patches are applied, and which variables they see (package patches); how extensions are called
// (providers/core/internal/extension).
package mutation
