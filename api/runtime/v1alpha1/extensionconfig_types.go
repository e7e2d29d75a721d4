package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	runtimev1beta2 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

const (
	// DefaultServicePort is the default port of an extension's Service.
	DefaultServicePort int32 = 443

	// DefaultHandlersTimeoutSeconds is the default timeout of a handler.
	DefaultHandlersTimeoutSeconds int32 = 10
)

// The annotations are the same in all API versions. Package v1beta2 explains them.
const (
	InjectCAFromSecretAnnotation = runtimev1beta2.InjectCAFromSecretAnnotation
	PendingHooksAnnotation       = runtimev1beta2.PendingHooksAnnotation
	CacheableAnnotation          = runtimev1beta2.CacheableAnnotation
	PayloadVersionAnnotation     = runtimev1beta2.PayloadVersionAnnotation
	OkToDeleteAnnotation         = runtimev1beta2.OkToDeleteAnnotation
)

// ExtensionConfigSpec is how to reach a server of extensions, and for which namespaces to call it.
type ExtensionConfigSpec struct {
	// clientConfig is how to reach the server.
	ClientConfig ClientConfig `json:"clientConfig"`

	// namespaceSelector selects, by the labels of their namespace, the objects that the extensions are called for. When
	// unset, all objects.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// settings are sent with each call.
	// +optional
	Settings map[string]string `json:"settings,omitempty"`
}

// ClientConfig is how to reach a server of extensions: with exactly one of url and service, always over HTTPS.
type ClientConfig struct {
	// url is the https URL of the server.
	// +optional
	URL *string `json:"url,omitempty"`

	// service is the Service of a server that runs in the management cluster.
	// +optional
	Service *ServiceReference `json:"service,omitempty"`

	// caBundle holds the CA certificates, in PEM, for verifying the server's certificate. Defaults to those of the host.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// ServiceReference references a Service.
type ServiceReference struct {
	// namespace is the namespace of the Service.
	Namespace string `json:"namespace"`

	// name is the name of the Service.
	Name string `json:"name"`

	// path is the prefix of the path of every call.
	// +optional
	Path *string `json:"path,omitempty"`

	// port is the port of the Service, 1 to 65535. When unset, 443.
	// +optional
	Port *int32 `json:"port,omitempty"`
}

// ExtensionConfigStatus is what was discovered from the server.
type ExtensionConfigStatus struct {
	// handlers are the extensions of the server.
	// +optional
	// +listType=map
	// +listMapKey=name
	Handlers []ExtensionHandler `json:"handlers,omitempty"`

	// conditions are the current conditions, set by the controllers.
	// +optional
	Conditions clusterv1.Conditions `json:"conditions,omitempty"`

	// v1beta2 is the part of the status that v1beta2 added, at the same paths below .status.
	// +optional
	V1Beta2 *ExtensionConfigV1Beta2Status `json:"v1beta2,omitempty"`
}

// ExtensionConfigV1Beta2Status is the part of the status of an ExtensionConfig that v1beta2 added.
type ExtensionConfigV1Beta2Status struct {
	// conditions are the current conditions, with the types and reasons of v1beta2.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ExtensionHandler is one extension.
type ExtensionHandler struct {
	// name is the name of the handler, a dot, and the name of the ExtensionConfig.
	Name string `json:"name"`

	// requestHook is the hook of the extension.
	RequestHook GroupVersionHook `json:"requestHook"`

	// timeoutSeconds is how long a call may take. When unset, 10.
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// failurePolicy is what happens when a call fails: Fail or Ignore. When unset, Fail.
	// +optional
	FailurePolicy *FailurePolicy `json:"failurePolicy,omitempty"`

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
	APIVersion string `json:"apiVersion"`

	// hook is the name of the hook.
	Hook string `json:"hook"`
}

// FailurePolicy is what happens when a call of an extension fails because it is unreachable or its response is invalid. A
// failure that the extension itself reports is never ignored.
type FailurePolicy string

const (
	// FailurePolicyIgnore ignores the failure.
	FailurePolicyIgnore FailurePolicy = "Ignore"
	// FailurePolicyFail makes the operation that required the call fail. It is the default.
	FailurePolicyFail FailurePolicy = "Fail"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=extensionconfigs,shortName=ext,scope=Cluster,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// ExtensionConfig registers a server of runtime extensions.
type ExtensionConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ExtensionConfigSpec   `json:"spec,omitempty"`
	Status ExtensionConfigStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the ExtensionConfig.
func (e *ExtensionConfig) GetConditions() clusterv1.Conditions { return e.Status.Conditions }

// SetConditions replaces the conditions of the ExtensionConfig.
func (e *ExtensionConfig) SetConditions(conditions clusterv1.Conditions) {
	e.Status.Conditions = conditions
}

// GetV1Beta2Conditions returns the conditions that v1beta2 shows.
func (e *ExtensionConfig) GetV1Beta2Conditions() []metav1.Condition {
	if e.Status.V1Beta2 == nil {
		return nil
	}
	return e.Status.V1Beta2.Conditions
}

// SetV1Beta2Conditions replaces the conditions that v1beta2 shows.
func (e *ExtensionConfig) SetV1Beta2Conditions(conditions []metav1.Condition) {
	if e.Status.V1Beta2 == nil {
		e.Status.V1Beta2 = &ExtensionConfigV1Beta2Status{}
	}
	e.Status.V1Beta2.Conditions = conditions
}

// +kubebuilder:object:root=true

// ExtensionConfigList is a list of ExtensionConfigs.
type ExtensionConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ExtensionConfig `json:"items"`
}
