// Package v1beta2 holds the kind of the API group runtime.cluster.x-k8s.io: ExtensionConfig, which registers a server of
// runtime extensions, with its conditions and the annotations of the runtime SDK. The hooks of such servers are in a
// separate group.
//
// +kubebuilder:object:generate=true
// +groupName=runtime.cluster.x-k8s.io
package v1beta2
