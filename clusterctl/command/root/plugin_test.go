package root

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFind(t *testing.T) {
	tests := map[string]struct {
		reason string
		args   []string
		want   plugin
		found  bool
	}{
		"One":     {reason: "The first word is the name of the program.", args: []string{"foo"}, want: plugin{Path: "/bin/clusterctl-foo", Args: []string{}}, found: true},
		"Longest": {reason: "The longest name wins.", args: []string{"foo", "bar", "x"}, want: plugin{Path: "/bin/clusterctl-foo-bar", Args: []string{"x"}}, found: true},
		"Rest":    {reason: "Remaining words and all flags are passed on.", args: []string{"foo", "x", "--flag", "y"}, want: plugin{Path: "/bin/clusterctl-foo", Args: []string{"x", "--flag", "y"}}, found: true},
		"Dash":    {reason: "A dash within a word is an underscore in the name.", args: []string{"my-plugin"}, want: plugin{Path: "/bin/clusterctl-my_plugin", Args: []string{}}, found: true},
		"Flag":    {reason: "Words after a flag are arguments.", args: []string{"--x", "foo"}},
		"Path":    {reason: "A plugin is a name, not a path.", args: []string{"a/foo"}},
		"None":    {reason: "There is no plugin of that name.", args: []string{"nope"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, found := lookUpPlugin(tc.args, func(file string) (string, error) {
				switch file {
				case "clusterctl-foo", "clusterctl-foo-bar", "clusterctl-my_plugin", "clusterctl-a/foo":
					return "/bin/" + file, nil
				default:
					return "", exec.ErrNotFound
				}
			})
			if diff := cmp.Diff(tc.want, got); diff != "" || found != tc.found {
				t.Errorf("%s\nFind(): found %v, -want +got:\n%s", tc.reason, found, diff)
			}
		})
	}
}

func TestLookPath(t *testing.T) {
	folder := t.TempDir()
	program := filepath.Join(folder, "clusterctl-planted")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	for _, test := range []struct {
		reason, path, want string
	}{
		{"an absolute entry of PATH", folder, program},
		{"the current directory", ".", ""},
		{"an empty entry is the current directory", "", ""},
		{"a folder below", "../" + filepath.Base(folder), ""},
	} {
		t.Setenv("PATH", "/nowhere"+string(os.PathListSeparator)+test.path)
		got, err := lookPath("clusterctl-planted")
		if got != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%s: got %q, %v, want %q", test.reason, got, err, test.want)
		}
	}
}
