package root

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/sdk/version"
)

// TestVersion pins the formats of the version, which scripts parse.
func TestVersion(t *testing.T) {
	c := newCLI(t)
	platform := runtime.GOOS + "/" + runtime.GOARCH
	v := version.Get()
	if out := c.works("version").Out; !strings.HasPrefix(out, `clusterctl version: &version.Info{Major:"`) || !strings.HasSuffix(out, `Platform:"`+platform+"\"}\n") {
		t.Errorf("got %q", out)
	}
	if diff := cmp.Diff(v.GitVersion+"\n", c.works("version", "-o", "short").Out); diff != "" {
		t.Errorf("short: -want +got:\n%s", diff)
	}
	if out := c.works("version", "-o", "text").Out; !strings.HasPrefix(out, "clusterctl "+v.GitVersion+" (") || strings.Contains(out, "Info") || !strings.HasSuffix(out, platform+")\n") {
		t.Errorf("got %q", out)
	}
	if out := c.works("version", "-o", "yaml").Out; !strings.HasPrefix(out, "clusterctl:\n  ") || !strings.Contains(out, "\n  platform: "+platform+"\n") {
		t.Errorf("got %q", out)
	}
	if out := c.works("version", "-o", "json").Out; !strings.HasPrefix(out, "{\n  \"clusterctl\": {\n    \"") || !strings.Contains(out, `"platform": "`+platform+`"`) {
		t.Errorf("got %q", out)
	}
}

// TestHelpGroups pins the groups of the documented commands; others may be added.
func TestHelpGroups(t *testing.T) {
	documented := map[string][]string{
		"Cluster Management Commands:":            {"delete", "generate", "get", "init", "move"},
		"Troubleshooting and Debugging Commands:": {"describe"},
		"Other Commands:":                         {"alpha", "completion", "config", "help", "version"},
	}
	help := newCLI(t).works("--help").Out
	for title, commands := range documented {
		_, group, found := strings.Cut(help, "\n"+title+"\n")
		if !found {
			t.Errorf("%q is missing in:\n%s", title, help)
			continue
		}
		group, _, _ = strings.Cut(group, "\n\n")
		var names []string
		for _, line := range regexp.MustCompile(`(?m)^  (\S+)`).FindAllStringSubmatch(group, -1) {
			names = append(names, line[1])
		}
		for _, command := range commands {
			if !slices.Contains(names, command) {
				t.Errorf("%q must be one of %q, got %v", command, title, names)
			}
		}
	}
}

// TestRepositoriesTable pins the table of `config repositories`.
func TestRepositoriesTable(t *testing.T) {
	lines := strings.Split(newCLI(t).works("config", "repositories").Out, "\n")
	aws := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "aws ") })
	if aws < 0 {
		t.Fatal("there is no provider aws")
	}
	want := []string{"aws", "InfrastructureProvider", "https://github.com/kubernetes-sigs/cluster-api-provider-aws/releases/latest/", "infrastructure-components.yaml"}
	if diff := cmp.Diff([][]string{{"NAME", "TYPE", "URL", "FILE"}, want}, [][]string{strings.Fields(lines[0]), strings.Fields(lines[aws])}); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, l := range lines[:aws] {
		if !strings.Contains(l, "   ") {
			t.Errorf("columns are 3 spaces apart: %q", l)
		}
	}
}

// TestQuiet runs a command that reports progress.
func TestQuiet(t *testing.T) {
	c := newCLI(t)
	args := []string{"generate", "cluster", "c1", "-i", "toy", "--kubernetes-version", "v1.29.0"}
	loud, quiet := c.works(args...), c.works(append(args, "-q")...)
	if loud.Err == "" || quiet.Err != "" || quiet.Out != loud.Out {
		t.Errorf("only messages are left out, got %q, want %q; messages %q", quiet.Out, loud.Out, quiet.Err)
	}
	c.fails("Errors are not hidden.", []string{"-q", "generate", "cluster", "c1", "-i", "toys"}, `did you mean "toy"?`)
}
