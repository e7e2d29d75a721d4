package v1beta2

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// encoders are the ways in which objects of this package reach the wire, or a patch.
func encoders() map[string]func(*JoinConfiguration) ([]byte, error) {
	return map[string]func(*JoinConfiguration) ([]byte, error){
		"JSON": func(c *JoinConfiguration) ([]byte, error) { return json.Marshal(c) },
		"unstructured": func(c *JoinConfiguration) ([]byte, error) {
			tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
			if err != nil {
				return nil, err
			}
			return json.Marshal(tree)
		},
		"deep copy": func(c *JoinConfiguration) ([]byte, error) { return json.Marshal(c.DeepCopy()) },
	}
}

func TestTaintsRoundTrip(t *testing.T) {
	tests := []struct {
		reason string
		taints *[]corev1.Taint
		want   string
	}{
		{
			reason: "unset leaves the decision to kubeadm, so it must stay absent",
			want:   `{}`,
		},
		{
			reason: "an empty list asks for no taints, so it must not become absent",
			taints: &[]corev1.Taint{},
			want:   `{"nodeRegistration":{"taints":[]}}`,
		},
		{
			reason: "taints are kept",
			taints: &[]corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}},
			want:   `{"nodeRegistration":{"taints":[{"effect":"NoSchedule","key":"a"}]}}`,
		},
	}
	for name, encode := range encoders() {
		for _, tt := range tests {
			t.Run(name+": "+tt.reason, func(t *testing.T) {
				encoded, err := encode(&JoinConfiguration{NodeRegistration: NodeRegistrationOptions{Taints: tt.taints}})
				if err != nil {
					t.Fatalf("encode: %v", err)
				}
				if got := canonical(t, encoded); got != tt.want {
					t.Errorf("encoded as %s, want %s", got, tt.want)
				}
				decoded := &JoinConfiguration{}
				if err := json.Unmarshal(encoded, decoded); err != nil {
					t.Fatalf("decode: %v", err)
				}
				again, err := encode(decoded)
				if err != nil {
					t.Fatalf("encode again: %v", err)
				}
				if got := canonical(t, again); got != tt.want {
					t.Errorf("encoded as %s after a round trip, want %s", got, tt.want)
				}
			})
		}
	}
}

// canonical sorts the keys of a JSON document.
func canonical(t *testing.T, document []byte) string {
	t.Helper()
	var tree any
	if err := json.Unmarshal(document, &tree); err != nil {
		t.Fatalf("parse %s: %v", document, err)
	}
	sorted, err := json.Marshal(tree)
	if err != nil {
		t.Fatalf("write %v: %v", tree, err)
	}
	return string(sorted)
}

const (
	tokenID     = "abcdef"
	tokenSecret = "0123456789abcdef"
)

func TestBootstrapTokenStringRoundTrip(t *testing.T) {
	tests := []struct {
		reason string
		json   string
		want   BootstrapTokenString
		fails  bool
	}{
		{reason: "a token is split at its dot", json: `"abcdef.0123456789abcdef"`, want: BootstrapTokenString{ID: tokenID, Secret: tokenSecret}},
		{reason: "an empty string is no token", json: `""`},
		{reason: "a short secret is refused", json: `"abcdef.0123456789abcde"`, fails: true},
		{reason: "a long secret is refused", json: `"abcdef.0123456789abcdef0"`, fails: true},
		{reason: "upper case is refused", json: `"ABCDEF.0123456789abcdef"`, fails: true},
		{reason: "a token over two lines is refused", json: `"abcdef.0123456789abcdef\n"`, fails: true},
		{reason: "an object is refused", json: `{"id":"abcdef","secret":"0123456789abcdef"}`, fails: true},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			var got BootstrapTokenString
			err := json.Unmarshal([]byte(tt.json), &got)
			if (err != nil) != tt.fails {
				t.Fatalf("decode: error %v, want one: %t", err, tt.fails)
			}
			if err != nil {
				if strings.Contains(err.Error(), tokenSecret[:8]) {
					t.Errorf("the error repeats the secret: %v", err)
				}
				return
			}
			if got != tt.want {
				t.Errorf("decoded another token than %s", tt.json)
			}
			encoded, err := json.Marshal(got)
			if err != nil {
				t.Fatalf("encode: %v", err)
			}
			if string(encoded) != tt.json {
				t.Errorf("encoded as another token than %s", tt.json)
			}
		})
	}
}

func TestBootstrapTokenStringUnstructured(t *testing.T) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&BootstrapToken{Token: BootstrapTokenString{ID: tokenID, Secret: tokenSecret}})
	if err != nil {
		t.Fatalf("convert: %v", err)
	}
	if want := tokenID + "." + tokenSecret; tree["token"] != want {
		t.Errorf("the token became %v, want one string", tree["token"])
	}
}

func TestBootstrapTokenStringHidesItsSecret(t *testing.T) {
	token := BootstrapTokenString{ID: tokenID, Secret: tokenSecret}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, value := range []any{token, &token, struct{ Token BootstrapTokenString }{token}, []BootstrapTokenString{token}} {
			if got := fmt.Sprintf(verb, value); strings.Contains(got, tokenSecret) || !strings.Contains(got, tokenID) {
				t.Errorf("%s of %T gives %s, want the id and not the secret", verb, value, got)
			}
		}
	}
}
