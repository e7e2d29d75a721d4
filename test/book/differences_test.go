package book

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/cluster-api/clusterctl/command/root"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/sdk/feature"
)

// TestDifferences checks statements of docs/book/differences.md about what exists here and what does not.
func TestDifferences(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "book", "differences.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	quoted := func(line string) []string {
		t.Helper()
		found := regexp.MustCompile(`(?m)^\| ` + line + `.*$`).FindString(page)
		if found == "" {
			t.Fatalf("no row begins with %q", line)
		}
		var names []string
		for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(found, -1) {
			names = append(names, match[1])
		}
		return names
	}
	for _, name := range quoted("providers that v1.8 to v1.14 added") {
		if slices.ContainsFunc(packages.Defaults(), func(p packages.Provider) bool { return p.Name == name }) {
			t.Errorf("clusterctl knows provider %s", name)
		}
	}
	if feature.New(feature.MachineSetPreflightChecks).Enabled(feature.MachineSetPreflightChecks) {
		t.Error("MachineSetPreflightChecks is on by default")
	}
	streams, _ := iostreams.Test()
	cmd := root.NewCmd(factory.New(streams, func(string) (string, bool) { return "", false }, nil))
	for _, match := range regexp.MustCompile("`clusterctl ([a-z ]+)`").FindAllStringSubmatch(page, -1) {
		if found, rest, err := cmd.Find(strings.Fields(match[1])); err != nil || len(rest) > 0 || found == cmd {
			t.Errorf("there is no `clusterctl %s`: %v", match[1], err)
		}
	}
}
