package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
)

const (
	// DefaultHandlersTimeoutSeconds is the timeout of handlers that set none.
	DefaultHandlersTimeoutSeconds int32 = 10
	// MaxHandlersTimeoutSeconds is the longest timeout that a handler can set.
	MaxHandlersTimeoutSeconds int32 = 30
)

// +kubebuilder:object:root=true

// DiscoveryRequest is the request of the hook Discovery.
type DiscoveryRequest struct {
	metav1.TypeMeta `json:",inline"`
}

var _ ResponseObject = &DiscoveryResponse{}

// +kubebuilder:object:root=true

// DiscoveryResponse is the response of the hook Discovery.
type DiscoveryResponse struct {
	metav1.TypeMeta `json:",inline"`

	// CommonResponse are the fields of all responses.
	CommonResponse `json:",inline"`

	// handlers are the extensions of the server.
	// +listType=map
	// +listMapKey=name
	Handlers []ExtensionHandler `json:"handlers"`
}

// ExtensionHandler is one extension of a server.
type ExtensionHandler struct {
	// name is the name of the handler, a DNS label that is unique on the server.
	Name string `json:"name"`

	// requestHook is the hook of the handler.
	RequestHook GroupVersionHook `json:"requestHook"`

	// timeoutSeconds is how long a call may take, at most 30. When unset, 10.
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// failurePolicy is what happens when a call fails: Fail or Ignore. When unset, Fail.
	// +optional
	FailurePolicy *FailurePolicy `json:"failurePolicy,omitempty"`

	// payloadVersion is the version, v1beta1 or v1beta2, of what requests and responses have of the group cluster.x-k8s.io. When unset,
	// v1beta1.
	// +optional
	PayloadVersion string `json:"payloadVersion,omitempty"`
}

// GroupVersionHook identifies a version of a hook.
type GroupVersionHook struct {
	// apiVersion is the group and version of the hook.
	APIVersion string `json:"apiVersion"`

	// hook is the name of the hook.
	Hook string `json:"hook"`
}

// FailurePolicy is what happens when the server is unreachable or its response is invalid.
type FailurePolicy string

const (
	// FailurePolicyIgnore ignores the failure.
	FailurePolicyIgnore FailurePolicy = "Ignore"
	// FailurePolicyFail makes the operation that required the call fail. It is the default.
	FailurePolicyFail FailurePolicy = "Fail"
)

// Discovery is the hook by which a server lists its extensions.
func Discovery(*DiscoveryRequest, *DiscoveryResponse) {}

func registerDiscovery(b *runtimecatalog.Builder) {
	b.RegisterHook(Discovery, &runtimecatalog.HookMeta{
		Tags:        []string{"Discovery"},
		Summary:     "Lists the extensions of a server",
		Description: "Cluster API calls this hook when an ExtensionConfig is created or changes, and regularly after that.",
		Singleton:   true,
	})
}
