package operator

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestReady(t *testing.T) {
	for _, tc := range []struct {
		reason    string
		condition map[string]any
		want      string
	}{
		{"a condition with a message", map[string]any{"type": "ProviderInstalled", "status": "False", "reason": "R", "message": "m"}, "ProviderInstalled: m"},
		{"one with a reason alone", map[string]any{"type": "ProviderInstalled", "status": "False", "reason": "R"}, "ProviderInstalled: R"},
		{"one with neither", map[string]any{"type": "ProviderInstalled", "status": "False"}, "ProviderInstalled is False"},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{tc.condition}}}}
		if done, got := ready(u); done || got != tc.want {
			t.Errorf("%s: ready is %v, got %q, want %q", tc.reason, done, got, tc.want)
		}
	}
}
