// Package v1alpha1 holds the kind of the API group runtime.cluster.x-k8s.io: ExtensionConfig, by which a server of
// runtime extensions is registered, with its conditions and the annotations of the runtime SDK. The hooks that such a
// server answers are a group of their own and do not belong here.
//
// +kubebuilder:object:generate=true
// +groupName=runtime.cluster.x-k8s.io
package v1alpha1
