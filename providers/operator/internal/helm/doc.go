// Package helm changes provider objects as ConfigMaps with the label operator.cluster.x-k8s.io/declarations declare them. The Helm
// chart writes one: a hook of Helm can create an object when the webhooks run, but cannot change it later.
//
//	apply  changes the objects whose declaration differs from the last one
//
// Only the fields that are or were declared are changed: what users changed in between stays. Creating and deleting objects does not
// belong here.
package helm
