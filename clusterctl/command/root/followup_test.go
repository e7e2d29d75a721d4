package root

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
)

// parsed returns the FollowUp of a command line of a program.
func parsed(t *testing.T, program string, args ...string) *clusterflags.FollowUp {
	t.Helper()
	streams, _ := iostreams.Test()
	cmd := NewCmd(factory.New(streams, func(string) (string, bool) { return "", false }, nil))
	var found *clusterflags.FollowUp
	cmd.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		found = clusterflags.NewFollowUp(c, program)
		return errors.New("parsed")
	}
	cmd.SetArgs(args)
	if err := cmd.Execute(); err == nil || err.Error() != "parsed" {
		t.Fatal(err)
	}
	return found
}

// Commands that a command proposes are about the same cluster, with the same configuration, and have only flags that they know.
func TestFollowUps(t *testing.T) {
	all := parsed(t, "clusterctl", "init", "--config", "c.yaml", "--kubeconfig", "my dir/k", "--context", "admin@x")
	for _, tc := range []struct{ reason, line, want string }{
		{"a command", "clusterctl describe cluster c1 -n ns", "clusterctl describe cluster c1 -n ns --config c.yaml --kubeconfig 'my dir/k' --kubeconfig-context admin@x"},
		{"one without a cluster", "clusterctl config repositories", "clusterctl config repositories --config c.yaml"},
		{"kubectl", "kubectl get clusters -A", "kubectl get clusters -A --kubeconfig 'my dir/k' --context admin@x"},
		{"a pipe", "clusterctl generate cluster [name] | kubectl apply -f -",
			"clusterctl generate cluster [name] --config c.yaml --kubeconfig 'my dir/k' --kubeconfig-context admin@x | kubectl apply -f - --kubeconfig 'my dir/k' --context admin@x"},
		{"a file", "clusterctl get kubeconfig c1 > k", "clusterctl get kubeconfig c1 --config c.yaml --kubeconfig 'my dir/k' --kubeconfig-context admin@x > k"},
		{"another cluster", "kubectl --kubeconfig c1.kubeconfig get pods", "kubectl --kubeconfig c1.kubeconfig get pods"},
		{"both clusters", "clusterctl get kubeconfig c1 > k && kubectl --kubeconfig k get --raw /readyz",
			"clusterctl get kubeconfig c1 --config c.yaml --kubeconfig 'my dir/k' --kubeconfig-context admin@x > k && kubectl --kubeconfig k get --raw /readyz"},
		{"help", "clusterctl upgrade apply --help", "clusterctl upgrade apply --help"},
	} {
		if got := all.Line(tc.line); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.reason, got, tc.want)
		}
	}
	for _, tc := range []struct{ reason, text, want string }{
		{"a command to run", "x: run `clusterctl init` first", "x: run `clusterctl init --kubeconfig k` first"},
		{"several", "see `kubectl get providers -A`, or install it with `clusterctl init`",
			"see `kubectl get providers -A --kubeconfig k`, or install it with `clusterctl init --kubeconfig k`"},
		{"after a colon", "Resume it: `kubectl annotate x y-`", "Resume it: `kubectl annotate x y- --kubeconfig k`"},
		{"one that is only mentioned", "it was not created by `clusterctl create cluster`: delete it", "it was not created by `clusterctl create cluster`: delete it"},
	} {
		if got := parsed(t, "clusterctl", "get", "clusters", "--kubeconfig", "k").Text(tc.text); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.reason, got, tc.want)
		}
	}
	if got := parsed(t, "bin/clusterctl", "get", "clusters", "--kubeconfig", "k").Line("clusterctl get kubeconfig c1 > k1 && kubectl --kubeconfig k1 get nodes"); got !=
		"bin/clusterctl get kubeconfig c1 --kubeconfig k > k1 && kubectl --kubeconfig k1 get nodes" {
		t.Errorf("by a path: %s", got)
	}
	const line = "clusterctl init --infrastructure aws"
	if got := parsed(t, "clusterctl", "get", "clusters").Line(line); got != line {
		t.Errorf("without flags: %s", got)
	}
}

// TestProgram: proposed commands call clusterctl as the user does.
func TestProgram(t *testing.T) {
	for called, want := range map[string]string{
		"clusterctl": "clusterctl", "clusterctl.exe": "clusterctl", "bin/clusterctl": "bin/clusterctl", "./clusterctl-linux-amd64": "./clusterctl-linux-amd64",
		"/opt/my tools/clusterctl": "'/opt/my tools/clusterctl'", "/home/me/.krew/bin/kubectl-clusterctl": "kubectl clusterctl", `C:\krew\kubectl-clusterctl.exe`: "kubectl clusterctl",
		"/usr/bin/kubectl-operator": "clusterctl",
	} {
		if got := clusterflags.Program(called); got != want {
			t.Errorf("%s: got %s, want %s", called, got, want)
		}
	}
}

// TestFollowUpsAreComplete checks that no command prints a command line that Streams.Command or Streams.Commands has not completed.
func TestFollowUpsAreComplete(t *testing.T) {
	proposes := regexp.MustCompile("(?:^|[ `\\\\n])(?:clusterctl|kubectl) [a-z]")
	printing := []string{"Infof", "Noticef", "Fprintf", "Fprintln", "Fprint"}
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); !ok || !slices.Contains(printing, f.Sel.Name) {
				return true
			}
			for _, argument := range call.Args {
				ast.Inspect(argument, func(n ast.Node) bool {
					if text, ok := n.(*ast.BasicLit); ok && proposes.MatchString(text.Value) {
						t.Errorf("%s: complete the command with Streams.Command: %s", files.Position(text.Pos()), text.Value)
					}
					_, nested := n.(*ast.CallExpr)
					return !nested
				})
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Errors propose complete commands, except those of move, which has two clusters.
func TestFollowUpsInErrors(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"upgrade", "plan", "--kubeconfig", "k"}, "Error: it is new: run `clusterctl init --kubeconfig k` first"},
		{[]string{"upgrade", "plan"}, "Error: it is new: run `clusterctl init` first"},
		{[]string{"move", "--kubeconfig", "k", "--to-kubeconfig", "l"}, "Error: it is new: run `clusterctl init` first"},
	} {
		streams, buffers := iostreams.Test()
		f := factory.New(streams, func(name string) (string, bool) { return "true", name == "CLUSTERCTL_DISABLE_VERSIONCHECK" }, nil)
		f.Connect = func(management.Kubeconfig) (*management.Cluster, error) {
			return nil, errors.New("it is new: run `clusterctl init` first")
		}
		if err := Run(t.Context(), f, tc.args); err == nil || !strings.Contains(buffers.Err.String(), tc.want) {
			t.Errorf("%v: got %q, want %q", tc.args, buffers.Err, tc.want)
		}
	}
}
