// Package mutation calls runtime extensions for the external patches of ClusterClasses: GeneratePatches and ValidateTopology for Clusters,
// DiscoverVariables for classes; and for the versions of upgrades, GenerateUpgradePlan.
//
// Responses to GeneratePatches and ValidateTopology are cached by request, handler, settings and version of the ExtensionConfig: for
// five minutes, or, if the ExtensionConfig promises that they depend on nothing else, until one of these changes. Responses to
// DiscoverVariables are cached in the same way by generation of the class, and those to GenerateUpgradePlan by generation of the Cluster
// and the versions between which to upgrade. So reconciling an unchanged topology or class calls no extension.
//
// Patches must be deterministic: otherwise each reconcile would replace templates, and with them Machines. A new request is
// sent twice, unless the Cluster is only being created: if the two responses lead to different templates, that is an error with the
// name of the extension, and nothing is changed.
//
// A failed call that the failure policy of the extension ignores is not cached: the last patches for the same request are used, if
// there are any, and the next reconcile calls again.
//
// What does not belong here: when patches are applied, and which variables they see (package patches); how extensions are called
// (providers/internal/extension).
package mutation
