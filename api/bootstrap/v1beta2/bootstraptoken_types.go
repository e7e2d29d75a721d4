package v1beta2

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BootstrapToken is a token that `kubeadm init` creates in the new cluster.
type BootstrapToken struct {
	// token is the token itself, `<id>.<secret>`.
	// +required
	Token BootstrapTokenString `json:"token,omitzero"`

	// description is the purpose of the token.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Description string `json:"description,omitempty"`

	// ttlSeconds is the lifetime of the token in seconds, one day if neither ttlSeconds nor expires is set; mutually exclusive
	// with expires.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSeconds *int32 `json:"ttlSeconds,omitempty"`

	// expires is when the token expires; mutually exclusive with ttlSeconds.
	// +optional
	Expires metav1.Time `json:"expires,omitempty,omitzero"`

	// usages of the token: `signing`, `authentication`, or both when unset.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Usages []string `json:"usages,omitempty"`

	// groups are the groups of the token's user; defaults to kubeadm's.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Groups []string `json:"groups,omitempty"`
}

// BootstrapTokenString is a bootstrap token. In JSON and YAML it is the string `<id>.<secret>`.
//
// Formatting the value hides the secret half: only Encode returns the whole token.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=23
type BootstrapTokenString struct {
	// ID is the public half, six characters of a-z and 0-9.
	ID string `json:"-"`

	// Secret is the secret half, sixteen characters of a-z and 0-9.
	Secret string `json:"-"`
}

// bootstrapTokenForm is the format of bootstrap tokens.
const bootstrapTokenForm = `^[a-z0-9]{6}\.[a-z0-9]{16}$`

// NewBootstrapTokenString parses a token of the form `<id>.<secret>`. Its error does not repeat the token.
func NewBootstrapTokenString(token string) (*BootstrapTokenString, error) {
	ok, err := regexp.MatchString(bootstrapTokenForm, token)
	if err != nil {
		return nil, fmt.Errorf("match bootstrap token: %w", err)
	}
	if !ok {
		return nil, errors.New("bootstrap token is malformed: it must be six characters of a-z and 0-9, a dot, and sixteen more such characters")
	}
	id, secret, _ := strings.Cut(token, ".")
	return &BootstrapTokenString{ID: id, Secret: secret}, nil
}

// Encode returns the whole token, `<id>.<secret>`, or nothing when both halves are empty. The result is a secret.
func (t BootstrapTokenString) Encode() string {
	if t.ID == "" && t.Secret == "" {
		return ""
	}
	return t.ID + "." + t.Secret
}

// Format hides the secret half for every verb of package fmt, so that tokens are not logged by accident.
func (t BootstrapTokenString) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "%s.[hidden]", t.ID)
}

// MarshalJSON writes the token as a string.
func (t BootstrapTokenString) MarshalJSON() ([]byte, error) {
	return json.Marshal(t.Encode())
}

// UnmarshalJSON reads the token from a string. An empty string or null leaves the token empty.
func (t *BootstrapTokenString) UnmarshalJSON(data []byte) error {
	var token string
	if err := json.Unmarshal(data, &token); err != nil {
		return errors.New("bootstrap token must be a string")
	}
	if token == "" {
		*t = BootstrapTokenString{}
		return nil
	}
	parsed, err := NewBootstrapTokenString(token)
	if err != nil {
		return err
	}
	*t = *parsed
	return nil
}
