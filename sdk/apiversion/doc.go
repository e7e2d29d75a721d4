// Package apiversion is the boundary between the version of an API that code is written in, and the version that API servers store.
// Clients, caches and mappers of a Boundary take and return objects of any version of a kind, and send requests in the stored one, so that
// no request has to pass a conversion webhook: they work while the webhook is down, before its definition has it, and if the
// definition serves only one of the versions. What belongs here is when to convert; how is in the Registry.
//
// # Stored versions
//
// Discovery has them: the storageVersionHash of a resource is the hash of its stored version. That takes one request of a few kilobytes for
// a group and version, which all users may send. Reading CustomResourceDefinitions would take a permission that most managers do not have,
// and megabytes of schemas. API servers may change the hash: if it matches no version of the Registry, the first version that is served
// counts as stored. Such a mistake costs time, but nothing breaks, since API servers convert what is not in the stored version.
//
// A kind is looked up at its first use, and again when a watch or list of an informer ends early: API servers end the watches of a kind
// whose definition changes. Informers continue in the new version, with the objects that they have. While nothing changes, there are no
// requests. Kinds that are not served are looked up at each use.
//
// # Objects
//
// Objects in the stored version, of kinds that the Registry does not have, and of versions that it does not have, pass unchanged: the cost
// is looking up their kind. Typed and unstructured objects are converted. PartialObjectMetadata needs no conversion, so that only its
// version is replaced. An informer decodes each event once, converts it once, and keeps the result.
//
// # Patches
//
// A patch is written for one version. Those of MergeFrom and Merge are computed again in the stored version, from both sides, so that they
// have what the changes result in, and nothing else. Other patches must change metadata alone, or they are an error.
// Applied objects (server-side apply) must be in the stored version, as Applied returns them.
//
// Owner references to kinds of the Registry are written in the stored version as well, in objects of all kinds. They are read as they are:
// code must not depend on the version.
//
// A version may have fields that another has not. Conversions keep them in an annotation, which requests to the status subresource cannot
// change: of a status, what the stored version has no field for is not stored. It is the same if an API server converts.
package apiversion
