package book

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/clusterctl/management"
)

// TestSupportedVersions compares the table of docs/book/releases.md with what the code refuses, and the tests run.
func TestSupportedVersions(t *testing.T) {
	read := func(path string) string {
		t.Helper()
		raw, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	find := func(path, pattern string) string {
		t.Helper()
		match := regexp.MustCompile(`(?m)` + pattern).FindStringSubmatch(read(path))
		if match == nil {
			t.Fatalf("%s has no %s", path, pattern)
		}
		return match[1]
	}
	minor := func(version string) string { return strings.Join(strings.Split(version, ".")[:2], ".") }
	list := func(versions string) string { return strings.Join(strings.Fields(versions), ", ") }
	rows := map[string][]string{}
	for line := range strings.Lines(read("docs/book/releases.md")) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			var trimmed []string
			for _, cell := range cells[2 : len(cells)-1] {
				trimmed = append(trimmed, strings.TrimSpace(cell))
			}
			rows[strings.TrimSpace(cells[1])] = trimmed
		}
	}
	server := find("standalone/go.mod", `^\tk8s\.io/kubernetes (v\S+)$`)
	for row, want := range map[string]string{
		"management cluster":                                 minor(management.MinKubernetesTopology) + " and later, " + minor(management.MinKubernetes) + " without ClusterClass",
		"workload cluster: kubeadm's configuration":          minor(find("docs/book/certificates.md", `^\| (v1\.\d+) to v1\.\d+ \| .v1beta2. \|`)) + " and later",
		"workload cluster: tested with kubeadm":              list(find("Makefile", `^SUPPORTED_VERSIONS = (.*)$`)),
		"workload cluster: whole clusters, with each change": list(find("Makefile", `^NODE_VERSIONS \?= (.*)$`)),
		"workload cluster: whole clusters, each night":       list(find("hack/soak.sh", `NODE_VERSIONS="([^"]+)"`)),
		"node images of the Docker provider":                 find("providers/infrastructure-docker/nodeimage/programs/programs.go", `^const MinKubernetes = "(.*)"$`) + " and later",
		"this version":                                       find("Makefile", `^VERSION \?= (.*)$`) + ". `clusterctl version` prints that of a program",
	} {
		if len(rows[row]) == 0 || rows[row][0] != want {
			t.Errorf("docs/book/releases.md: %s is %q, want %q", row, rows[row], want)
		}
	}
	if cells := rows["management cluster"]; len(cells) < 2 || !strings.HasSuffix(cells[1], ", "+server) {
		t.Errorf("docs/book/releases.md: tests run on %s, not as in %q", server, cells)
	}
	var metadata struct{ ReleaseSeries []struct{ Major, Minor int } }
	if err := yaml.Unmarshal([]byte(read("release/files/metadata.yaml")), &metadata); err != nil {
		t.Fatal(err)
	}
	if newest, oldest := metadata.ReleaseSeries[1], metadata.ReleaseSeries[len(metadata.ReleaseSeries)-1]; newest.Major != 1 || newest.Minor != 7 || oldest.Major != 1 || oldest.Minor != 0 ||
		len(rows["v2.0"]) < 3 || rows["v2.0"][2] != "v1.0 to v1.7" {
		t.Errorf("docs/book/releases.md: upgrades are from %v, the table has %q", metadata.ReleaseSeries, rows["v2.0"])
	}
}

// TestNoFlagForTheRepository: a clusterctl that was built in the checkout needs no --config for its repository.
func TestNoFlagForTheRepository(t *testing.T) {
	pages, err := read(filepath.Join("..", ".."), "docs/book/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		for _, b := range p.blocks {
			if strings.Contains(b.code, "--config out/repository/clusterctl.yaml") {
				t.Errorf("%s: the flag is not needed:\n%s", p.name, b.code)
			}
		}
	}
}
