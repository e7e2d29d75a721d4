package selectors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	root := t.TempDir()
	write := func(name, content string) {
		path := filepath.Join(root, "providers", "p", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("internal/webhook/w.go", "package webhook\n\n// +capi:webhook:objectSelector:name=b.x.io,exists=x.io/label\n")
	write("config/webhook/manifests.yaml", "webhooks:\n- failurePolicy: Fail\n  name: a.x.io\n  rules: []\n- failurePolicy: Ignore\n  name: b.x.io\n  rules: []\n")
	if err := Write(root); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "providers", "p", "config", "webhook", "manifests.yaml"))
	want := "webhooks:\n- failurePolicy: Fail\n  name: a.x.io\n  rules: []\n- failurePolicy: Ignore\n  name: b.x.io\n" +
		"  objectSelector:\n    matchExpressions:\n    - key: x.io/label\n      operator: Exists\n  rules: []\n"
	if err != nil || string(got) != want {
		t.Errorf("manifest:\n%s\nerror %v", got, err)
	}
	write("config/webhook/manifests.yaml", "webhooks:\n- name: a.x.io\n")
	if err := Write(root); err == nil || !strings.Contains(err.Error(), "there must be one webhook with the name b.x.io") {
		t.Errorf("a marker without a webhook: error %v", err)
	}
}
