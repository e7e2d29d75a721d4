package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLower(t *testing.T) {
	l := limits{capabilities: []string{"CAP_CHOWN", "CAP_SYS_ADMIN"}, oomScore: 0}
	tests := []struct {
		reason    string
		in, want  string
		isProcess bool
	}{
		{
			reason: "capabilities outside the bounding set are removed from every set",
			in:     `{"process":{"capabilities":{"bounding":["CAP_CHOWN","CAP_SYS_RESOURCE"],"effective":["CAP_SYS_RESOURCE"]}}}`,
			want:   `{"process":{"capabilities":{"bounding":["CAP_CHOWN"],"effective":[]}}}`,
		},
		{
			reason: "an OOM score below the machine's is raised",
			in:     `{"process":{"oomScoreAdj":-500}}`,
			want:   `{"process":{"oomScoreAdj":0}}`,
		},
		{
			reason: "an OOM score above the machine's stays",
			in:     `{"process":{"oomScoreAdj":500}}`,
			want:   `{"process":{"oomScoreAdj":500}}`,
		},
		{
			reason: "unknown fields and large numbers stay as they are",
			in:     `{"linux":{"resources":{"memory":{"limit":9223372036854771712}}},"process":{"capabilities":{"bounding":["CAP_BPF"]}}}`,
			want:   `{"linux":{"resources":{"memory":{"limit":9223372036854771712}}},"process":{"capabilities":{"bounding":[]}}}`,
		},
		{
			reason:    "the document of exec is the process itself",
			isProcess: true,
			in:        `{"capabilities":{"bounding":["CAP_SYS_RESOURCE","CAP_SYS_ADMIN"]}}`,
			want:      `{"capabilities":{"bounding":["CAP_SYS_ADMIN"]}}`,
		},
		{
			reason: "a container without a process requests nothing",
			in:     `{"ociVersion": "1.0.2"}`,
			want:   `{"ociVersion": "1.0.2"}`,
		},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			got, err := l.lower([]byte(test.in), test.isProcess)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(compact(t, test.want), compact(t, string(got))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// compact returns JSON with sorted keys, and numbers as they are written.
func compact(t *testing.T, in string) string {
	t.Helper()
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(in), &raw); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestLowerRejects(t *testing.T) {
	if _, err := (limits{}).lower([]byte("not JSON"), false); err == nil {
		t.Error("a request that is not JSON must be an error, or runc would start with what it cannot have")
	}
}

func TestApplyToKeepsAFileThatFits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, []byte(`{ "process": {} }`), 0o400); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := (limits{}).applyTo(path, false); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if !before.ModTime().Equal(after.ModTime()) || before.Size() != after.Size() {
		t.Error("the file was written, although it fits")
	}
}

func TestRequested(t *testing.T) {
	tests := []struct {
		reason    string
		args      []string
		path      string
		isProcess bool
	}{
		{reason: "create has a bundle", args: []string{"--root", "/run/x", "create", "--bundle", "/b", "--pid-file", "/p", "id"}, path: "/b/config.json"},
		{reason: "the bundle may be part of the flag", args: []string{"run", "--bundle=/b", "id"}, path: "/b/config.json"},
		{reason: "the bundle is the current folder by default", args: []string{"create", "id"}, path: "config.json"},
		{reason: "exec has a process", args: []string{"--log", "/l", "exec", "--process", "/p.json", "--detach", "id"}, path: "/p.json", isProcess: true},
		{reason: "exec of a command line has no file", args: []string{"exec", "id", "ls"}, isProcess: true},
		{reason: "other commands request nothing", args: []string{"--root", "/run/x", "delete", "--force", "id"}},
		{reason: "flags without a command are answered by runc", args: []string{"--version"}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			path, isProcess := requested(test.args)
			if path != test.path || isProcess != test.isProcess {
				t.Errorf("got %q, %v, want %q, %v", path, isProcess, test.path, test.isProcess)
			}
		})
	}
}

func TestMachineLimits(t *testing.T) {
	l, err := machineLimits()
	if err != nil {
		t.Fatal(err)
	}
	if len(l.capabilities) > 0 && l.capabilities[0] != "CAP_CHOWN" {
		t.Errorf("capabilities have names like CAP_CHOWN, got %q", l.capabilities[0])
	}
}
