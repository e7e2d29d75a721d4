// Package manifest reads the objects in the values of a ConfigMap or Secret.
//
// Values are documents of YAML or JSON, read in the order of their sorted keys. Within one key, kinds that others depend on come
// first. A document that cannot be read does not affect the others: it is an UnreadableError, which says where it is and never quotes it.
// Tenants write the values, so their size is limited, with YAML aliases expanded.
//
// What does not belong here: reading ConfigMaps and Secrets (package content), and applying objects (package workload).
package manifest
