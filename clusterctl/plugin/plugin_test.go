package plugin

import (
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFind(t *testing.T) {
	tests := map[string]struct {
		reason string
		args   []string
		want   Plugin
		found  bool
	}{
		"One":     {reason: "A word names the program.", args: []string{"foo"}, want: Plugin{Path: "/bin/clusterctl-foo", Args: []string{}}, found: true},
		"Longest": {reason: "The longest name wins.", args: []string{"foo", "bar", "x"}, want: Plugin{Path: "/bin/clusterctl-foo-bar", Args: []string{"x"}}, found: true},
		"Rest":    {reason: "What the name does not use is passed on, with all flags.", args: []string{"foo", "x", "--flag", "y"}, want: Plugin{Path: "/bin/clusterctl-foo", Args: []string{"x", "--flag", "y"}}, found: true},
		"Dash":    {reason: "A dash within a word is an underscore in the name.", args: []string{"my-plugin"}, want: Plugin{Path: "/bin/clusterctl-my_plugin", Args: []string{}}, found: true},
		"Flag":    {reason: "Words after a flag do not count.", args: []string{"--x", "foo"}},
		"Path":    {reason: "A plugin is a name, not a path.", args: []string{"a/foo"}},
		"None":    {reason: "Unknown is unknown.", args: []string{"nope"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, found := Find(tc.args, func(file string) (string, error) {
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
