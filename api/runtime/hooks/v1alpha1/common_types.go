package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// RequestObject is a request of any hook other than Discovery.
// +kubebuilder:object:generate=false
type RequestObject interface {
	runtime.Object
	// GetSettings returns the settings of the extension.
	GetSettings() map[string]string
	// SetSettings replaces the settings of the extension.
	SetSettings(settings map[string]string)
}

// ResponseObject is a response of any hook.
// +kubebuilder:object:generate=false
type ResponseObject interface {
	runtime.Object
	// GetMessage returns the message for users.
	GetMessage() string
	// SetMessage sets the message for users.
	SetMessage(message string)
	// GetStatus returns whether the call succeeded.
	GetStatus() ResponseStatus
	// SetStatus sets whether the call succeeded.
	SetStatus(status ResponseStatus)
}

// RetryResponseObject is a response of a hook that can block.
// +kubebuilder:object:generate=false
type RetryResponseObject interface {
	ResponseObject
	// GetRetryAfterSeconds returns after how many seconds to call again. Zero: the hook does not block.
	GetRetryAfterSeconds() int32
	// SetRetryAfterSeconds sets after how many seconds to call again. Zero: the hook does not block.
	SetRetryAfterSeconds(seconds int32)
}

// CommonRequest are the fields of all requests.
type CommonRequest struct {
	// settings are the settings of the ExtensionConfig, overlaid by those of the patch in the ClusterClass.
	// +optional
	Settings map[string]string `json:"settings,omitempty"`
}

// GetSettings returns the settings of the extension.
func (r *CommonRequest) GetSettings() map[string]string { return r.Settings }

// SetSettings replaces the settings of the extension.
func (r *CommonRequest) SetSettings(settings map[string]string) { r.Settings = settings }

// ResponseStatus is whether a call succeeded.
// +kubebuilder:validation:Enum=Success;Failure
type ResponseStatus string

const (
	// ResponseStatusSuccess means that the call succeeded.
	ResponseStatusSuccess ResponseStatus = "Success"
	// ResponseStatusFailure means that the call failed. The failure policy of the handler does not apply to it.
	ResponseStatusFailure ResponseStatus = "Failure"
)

// CommonResponse are the fields of all responses.
type CommonResponse struct {
	// status is Success or Failure.
	Status ResponseStatus `json:"status"`

	// message is for users. It must be deterministic, and must not contain secrets.
	Message string `json:"message"`
}

// GetMessage returns the message for users.
func (r *CommonResponse) GetMessage() string { return r.Message }

// SetMessage sets the message for users.
func (r *CommonResponse) SetMessage(message string) { r.Message = message }

// GetStatus returns whether the call succeeded.
func (r *CommonResponse) GetStatus() ResponseStatus { return r.Status }

// SetStatus sets whether the call succeeded.
func (r *CommonResponse) SetStatus(status ResponseStatus) { r.Status = status }

// CommonRetryResponse are the fields of responses of hooks that can block.
type CommonRetryResponse struct {
	// CommonResponse are the fields of all responses.
	CommonResponse `json:",inline"`

	// retryAfterSeconds is after how many seconds at most to call again. While it is not zero, the hook blocks.
	RetryAfterSeconds int32 `json:"retryAfterSeconds"`
}

// GetRetryAfterSeconds returns after how many seconds to call again. Zero: the hook does not block.
func (r *CommonRetryResponse) GetRetryAfterSeconds() int32 { return r.RetryAfterSeconds }

// SetRetryAfterSeconds sets after how many seconds to call again. Zero: the hook does not block.
func (r *CommonRetryResponse) SetRetryAfterSeconds(seconds int32) { r.RetryAfterSeconds = seconds }
