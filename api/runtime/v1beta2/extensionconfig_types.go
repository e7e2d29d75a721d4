package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// DefaultServicePort is the default port of an extension's Service.
	DefaultServicePort int32 = 443

	// DefaultHandlersTimeoutSeconds is the default timeout of a handler.
	DefaultHandlersTimeoutSeconds int32 = 10
)

const (
	// InjectCAFromSecretAnnotation on an ExtensionConfig references a Secret as <namespace>/<name>; its key ca.crt is
	// copied to spec.clientConfig.caBundle and kept up to date.
	InjectCAFromSecretAnnotation = "runtime.cluster.x-k8s.io/inject-ca-from-secret"

	// PendingHooksAnnotation on a Cluster lists, sorted and separated by commas, the hooks that are still to be called.
	// On objects that are being updated in place, it is UpdateMachine.
	PendingHooksAnnotation = "runtime.cluster.x-k8s.io/pending-hooks"

	// CacheableAnnotation on an ExtensionConfig promises that responses of its extensions to the hooks of topology mutation depend only on
	// the request until the ExtensionConfig changes; presence counts. An upgrade of the server has to change the spec, for example a
	// setting with its version. It is not part of Cluster API v1.7.
	CacheableAnnotation = "runtime.cluster.x-k8s.io/cacheable"

	// PayloadVersionAnnotation on an ExtensionConfig is the version, v1beta1 or v1beta2, of what requests and responses have of the group
	// cluster.x-k8s.io, for handlers that do not request one in their discovery: servers that are built with libraries of v1.13 or later
	// expect v1beta2. It is not part of Cluster API v1.14.
	PayloadVersionAnnotation = "runtime.cluster.x-k8s.io/payload-version"

	// OkToDeleteAnnotation on a Cluster means that the extensions allow its deletion to begin; presence counts.
	OkToDeleteAnnotation = "runtime.cluster.x-k8s.io/ok-to-delete"
)

// ExtensionConfigSpec is how to reach a server of extensions, and for which namespaces to call it.
type ExtensionConfigSpec struct {
	// clientConfig is how to reach the server.
	// +required
	ClientConfig ClientConfig `json:"clientConfig,omitempty,omitzero"`

	// namespaceSelector selects, by the labels of their namespace, the objects that the extensions are called for. When
	// unset, all objects.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// settings are sent with each call.
	// +optional
	Settings map[string]string `json:"settings,omitempty"`
}

// ClientConfig is how to reach a server of extensions: with exactly one of url and service, always over HTTPS.
// +kubebuilder:validation:MinProperties=1
type ClientConfig struct {
	// url is the https URL of the server.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	URL string `json:"url,omitempty"`

	// service is the Service of a server that runs in the management cluster.
	// +optional
	Service ServiceReference `json:"service,omitempty,omitzero"`

	// caBundle holds the CA certificates, in PEM, for verifying the server's certificate. Defaults to those of the host.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=51200
	CABundle []byte `json:"caBundle,omitempty"`
}

// ServiceReference references a Service.
type ServiceReference struct {
	// namespace is the namespace of the Service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name is the name of the Service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// path is the prefix of the path of every call.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// port is the port of the Service, 1 to 65535. When unset, 443.
	// +optional
	Port *int32 `json:"port,omitempty"`
}

// IsDefined reports whether any field of the reference is set.
func (r *ServiceReference) IsDefined() bool { return r != nil && *r != ServiceReference{} }

// ExtensionConfigStatus is what was discovered from the server.
// +kubebuilder:validation:MinProperties=1
type ExtensionConfigStatus struct {
	// conditions are the current conditions: Discovered and Paused.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// handlers are the extensions of the server.
	// +optional
	// +kubebuilder:validation:MaxItems=512
	// +listType=map
	// +listMapKey=name
	Handlers []ExtensionHandler `json:"handlers,omitempty"`

	// deprecated groups what an older API version shows, and controllers no longer use.
	// +optional
	Deprecated *ExtensionConfigDeprecatedStatus `json:"deprecated,omitempty"`
}

// ExtensionHandler is one extension.
type ExtensionHandler struct {
	// name is the name of the handler, a dot, and the name of the ExtensionConfig.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name,omitempty"`

	// requestHook is the hook of the extension.
	// +required
	RequestHook GroupVersionHook `json:"requestHook,omitempty,omitzero"`

	// timeoutSeconds is how long a call may take. When unset, 10.
	// +optional
	// +kubebuilder:validation:Minimum=1
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// failurePolicy is what happens when a call fails: Fail or Ignore. When unset, Fail.
	// +optional
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`

	// payloadVersion is the version, v1beta1 or v1beta2, of what requests and responses have of the group cluster.x-k8s.io. When unset,
	// v1beta1.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	PayloadVersion string `json:"payloadVersion,omitempty"`
}

// GroupVersionHook identifies a version of a hook.
type GroupVersionHook struct {
	// apiVersion is the group and version of the hook.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	APIVersion string `json:"apiVersion,omitempty"`

	// hook is the name of the hook.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Hook string `json:"hook,omitempty"`
}

// FailurePolicy is what happens when a call of an extension fails because it is unreachable or its response is invalid.
// A
// failure that the extension itself reports is never ignored.
// +kubebuilder:validation:Enum=Ignore;Fail
type FailurePolicy string

const (
	// FailurePolicyIgnore ignores the failure.
	FailurePolicyIgnore FailurePolicy = "Ignore"
	// FailurePolicyFail makes the operation that required the call fail. It is the default.
	FailurePolicyFail FailurePolicy = "Fail"
)

// ExtensionConfigDeprecatedStatus groups what an older API version shows, and controllers no longer use.
type ExtensionConfigDeprecatedStatus struct {
	// v1beta1 is the status that only v1beta1 has. It is removed together with that version.
	// +optional
	V1Beta1 *ExtensionConfigV1Beta1DeprecatedStatus `json:"v1beta1,omitempty"`
}

// ExtensionConfigV1Beta1DeprecatedStatus is the status that only v1beta1 has.
type ExtensionConfigV1Beta1DeprecatedStatus struct {
	// conditions are the conditions of v1beta1, with severities.
	// +optional
	Conditions clusterv1.Conditions `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=extensionconfigs,shortName=ext,scope=Cluster,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether the ExtensionConfig is paused",priority=10
// +kubebuilder:printcolumn:name="Discovered",type="string",JSONPath=`.status.conditions[?(@.type=="Discovered")].status`,description="Whether the extensions of the server are known"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// ExtensionConfig registers a server of runtime extensions.
type ExtensionConfig struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of objects.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec ExtensionConfigSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status ExtensionConfigStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the ExtensionConfig.
func (e *ExtensionConfig) GetConditions() []metav1.Condition { return e.Status.Conditions }

// SetConditions replaces the conditions of the ExtensionConfig.
func (e *ExtensionConfig) SetConditions(conditions []metav1.Condition) {
	e.Status.Conditions = conditions
}

// GetV1Beta1Conditions returns the conditions that v1beta1 shows.
func (e *ExtensionConfig) GetV1Beta1Conditions() clusterv1.Conditions {
	if e.Status.Deprecated == nil || e.Status.Deprecated.V1Beta1 == nil {
		return nil
	}
	return e.Status.Deprecated.V1Beta1.Conditions
}

// SetV1Beta1Conditions replaces the conditions that v1beta1 shows.
func (e *ExtensionConfig) SetV1Beta1Conditions(conditions clusterv1.Conditions) {
	if len(conditions) == 0 && len(e.GetV1Beta1Conditions()) == 0 {
		return
	}
	if e.Status.Deprecated == nil {
		e.Status.Deprecated = &ExtensionConfigDeprecatedStatus{}
	}
	if e.Status.Deprecated.V1Beta1 == nil {
		e.Status.Deprecated.V1Beta1 = &ExtensionConfigV1Beta1DeprecatedStatus{}
	}
	e.Status.Deprecated.V1Beta1.Conditions = conditions
}

// +kubebuilder:object:root=true

// ExtensionConfigList is a list of ExtensionConfigs.
type ExtensionConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ExtensionConfig `json:"items"`
}
