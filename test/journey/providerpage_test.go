package journey

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// providersPage tells users which releases are tested, and how.
const providersPage = "infrastructure.md"

// tables are those of the page: a row per release, and one per template that is not accepted.
func tables(releases map[string]providerRelease) (compatibility, rejected string) {
	for _, name := range slices.Sorted(maps.Keys(releases)) {
		r := releases[name]
		tested := "soak"
		if r.always {
			tested = "every change"
		}
		lives := "`" + r.whole + "`"
		if r.class != "" {
			lives += ", `" + r.class + "`"
		}
		compatibility += fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s |\n", name, r.version, r.contract, r.speaks, lives, tested)
		for _, template := range slices.Sorted(maps.Keys(r.rejected)) {
			rejected += fmt.Sprintf("| `%s` | `%s` | `%s` |\n", name, template, r.rejected[template])
		}
	}
	return compatibility, rejected
}

// TestCompatibilityPage compares the tables of the page with what the journeys declare, and do.
func TestCompatibilityPage(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "book", providersPage))
	testenv.Must(t, err)
	page := string(raw)
	compatibility, rejected := tables(providerReleases(managedHost))
	for heading, want := range map[string]string{
		"| provider | release | contract | templates | becomes ready, is upgraded, moves | tested |\n|---|---|---|---|---|---|\n": compatibility,
		"| provider | template | error |\n|---|---|---|\n":                                                                        rejected,
	} {
		_, rest, found := strings.Cut(page, heading)
		if !found {
			t.Errorf("%s has no table %s", providersPage, heading)
		}
		table, _, _ := strings.Cut(rest, "\n\n")
		if diff := gocmp.Diff(strings.Split(want, "\n"), append(strings.Split(table, "\n"), "")); diff != "" {
			t.Errorf("%s and providerReleases differ (-tests +page):\n%s\nthe table is to be:\n%s%s", providersPage, diff, heading, want)
		}
	}
	for name, r := range providerReleases(managedHost) {
		if want := fmt.Sprintf("--infrastructure %s:%s", name, r.version); !strings.Contains(page, want) {
			t.Errorf("%s has no example with %q", providersPage, want)
		}
	}
}

// TestDeclaredReleases compares what is declared of releases with their files.
func TestDeclaredReleases(t *testing.T) {
	folder := filepath.Join(cmp.Or(os.Getenv("CAPI_FACTS_DIR"), filepath.Join("..", "..", "..", "shared", "facts")), "data", "providers")
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("there are no published releases: set CAPI_FACTS_DIR to the directory with data/providers (%v)", err)
	}
	version := regexp.MustCompile(`(?m)^apiVersion: (?:cluster|controlplane\.cluster|bootstrap\.cluster)\.x-k8s\.io/(\w+)$`)
	for name, r := range providerReleases(managedHost) {
		release := filepath.Join(folder, name+"-"+r.version)
		metadata, err := os.ReadFile(filepath.Join(release, "metadata.yaml"))
		testenv.Must(t, err)
		parts := strings.Split(strings.TrimPrefix(r.version, "v"), ".")
		series := regexp.MustCompile(fmt.Sprintf(`major: %s\s+minor: %s\s+contract: (\w+)`, parts[0], parts[1])).FindSubmatch(metadata)
		if series == nil || string(series[1]) != r.contract {
			t.Errorf("%s: contract %s is declared, metadata.yaml has %q", name, r.contract, series)
		}
		files, err := filepath.Glob(filepath.Join(release, "templates", "*.yaml"))
		testenv.Must(t, err)
		speaks, names := map[string]bool{}, map[string]bool{}
		for _, file := range files {
			names[filepath.Base(file)] = true
			content, err := os.ReadFile(file)
			testenv.Must(t, err)
			for _, found := range version.FindAllStringSubmatch(string(content), -1) {
				speaks[found[1]] = true
			}
		}
		if have := strings.Join(slices.Sorted(maps.Keys(speaks)), ", "); have != r.speaks {
			t.Errorf("%s: templates in %s are declared, they are in %s", name, r.speaks, have)
		}
		for _, template := range append(slices.Collect(maps.Keys(r.rejected)), r.whole, cmp.Or(r.class, r.whole)) {
			if !names[template] {
				t.Errorf("%s has no template %s", name, template)
			}
		}
	}
}

// section returns the example of a provider.
func section(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "book", providersPage))
	testenv.Must(t, err)
	for text := range strings.SplitSeq(string(raw), "\n## ") {
		if heading, rest, _ := strings.Cut(text, "\n"); strings.EqualFold(heading, name) {
			return rest
		}
	}
	t.Fatalf("%s has no section about %s", providersPage, name)
	return ""
}

// example runs the commands of a provider's example in the book that generate Clusters, with no other variables than those that the example
// sets.
func (p *Providers) example(t *testing.T, name string) {
	text := section(t, name)
	config, err := os.ReadFile(p.tools.config)
	testenv.Must(t, err)
	for variable, value := range p.releases[name].variables {
		if strings.Contains(text, " "+variable+"=") {
			config = fmt.Appendf(config, "%s: %s\n", variable, value)
		}
	}
	if strings.Contains(text, " CLUSTER_APIENDPOINT_PORT=") {
		config = append(config, "CLUSTER_APIENDPOINT_PORT: '6443'\n"...)
	}
	tools := *p.tools
	tools.config = filepath.Join(t.TempDir(), "clusterctl.yaml")
	testenv.Must(t, os.WriteFile(tools.config, config, 0o600))
	commands := 0
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", ""), "\n") {
		rest, found := strings.CutPrefix(line, "clusterctl ")
		if !found || !strings.HasPrefix(rest, "generate cluster ") {
			continue
		}
		commands++
		rest, _, _ = strings.Cut(rest, " | ")
		rest, _, _ = strings.Cut(rest, " > ")
		args := strings.Fields(rest)
		if i := slices.Index(args, "--from"); i > 0 {
			args[i+1] = filepath.Join(p.folder, name+"-"+p.releases[name].version, "templates", args[i+1])
		}
		if r := p.clusterctl(&tools, args...); r.Failed || !strings.Contains(r.Out, "kind: Cluster\n") {
			t.Errorf("the example of %s: %s", name, r)
		}
	}
	if commands == 0 {
		t.Errorf("the example of %s generates no Cluster", name)
	}
}
