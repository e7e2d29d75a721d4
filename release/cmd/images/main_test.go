package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInvalidOptions(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		reason, want string
		args         []string
	}{
		{"no version", "--version and --out are required", []string{"--out", "x"}},
		{"no folder", "--version and --out are required", []string{"--version", "v2.0.0"}},
		{"an invalid platform", `--platforms: platform "amd64"`, []string{"--version", "v2.0.0", "--out", "x", "--platforms", "amd64"}},
		{"images are for Linux", "there are no images for darwin/arm64", []string{"--version", "v2.0.0", "--out", "x", "--platforms", "darwin/arm64"}},
		{"no key file", "--key: open", []string{"--version", "v2.0.0", "--out", "x", "--key", key + ".none"}},
		{"not a key", "is not in PEM", []string{"--version", "v2.0.0", "--out", "x", "--key", key}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			_, err := parse(test.args, func(string) string { return "" }, io.Discard)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestExecutable(t *testing.T) {
	for name, want := range map[string]string{"capd-manager": "/manager", "clusterctl": "/clusterctl", "capi": "/capi"} {
		if got := executable(name); got != want {
			t.Errorf("%s is %s in its image, want %s", name, got, want)
		}
	}
}
