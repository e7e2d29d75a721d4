package program_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/release/program"
)

const root = "../.."

// TestAll compares the programs with the folders of their main packages, and the managers with the images of the components.
func TestAll(t *testing.T) {
	found := map[string]bool{}
	for _, dir := range []string{"cmd", filepath.Join("standalone", "cmd")} {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			found[entry.Name()] = true
		}
	}
	listed := map[string]bool{}
	for _, name := range program.All() {
		listed[name] = true
	}
	if diff := cmp.Diff(found, listed); diff != "" {
		t.Errorf("-programs of the repository +programs of a release:\n%s", diff)
	}
	if diff := cmp.Diff(images(t), slices.Sorted(slices.Values(program.Managers()))); diff != "" {
		t.Errorf("-images of components +managers:\n%s", diff)
	}
}

// images returns the images of all components, sorted.
func images(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "providers", "*", "config", "component.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var component struct {
			Image string `json:"image"`
		}
		if err := yaml.Unmarshal(content, &component); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		names = append(names, component.Image)
	}
	slices.Sort(names)
	return names
}

func TestParsePlatform(t *testing.T) {
	for _, test := range []struct{ reason, in, suffix, problem string }{
		{"an operating system and an architecture", "linux/arm64", "linux-arm64", ""},
		{"programs for Windows have an extension", "windows/amd64", "windows-amd64.exe", ""},
		{"no architecture", "linux", "", "is not an operating system and an architecture"},
		{"a variant", "linux/arm/v7", "", "is not an operating system and an architecture"},
		{"a list with spaces", "linux/amd64 linux/arm64", "", "is not an operating system and an architecture"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			p, err := program.ParsePlatform(test.in)
			if test.problem == "" && (err != nil || p.Suffix() != test.suffix || p.String() != test.in) {
				t.Errorf("got %v with suffix %s, %v", p, p.Suffix(), err)
			}
			if test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("got %v, want an error with %q", err, test.problem)
			}
		})
	}
}

// TestStamps: the linker ignores -X for variables that do not exist.
func TestStamps(t *testing.T) {
	read := func(path ...string) string {
		t.Helper()
		raw, err := os.ReadFile(filepath.Join(path...))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	declared := read(root, "sdk", "version", "version.go")
	stamps := regexp.MustCompile(`-X \$\(PACKAGE\)\.(\w+)=`).FindAllStringSubmatch(read(root, "Makefile"), -1)
	stamps = append(stamps, regexp.MustCompile(`\{"(\w+)", (?:c\.|state|proxy)`).FindAllStringSubmatch(read("program.go"), -1)...)
	found := map[string]bool{}
	for _, stamp := range stamps {
		found[stamp[1]] = true
		if !regexp.MustCompile(`(?m)^\t` + stamp[1] + ` +string$`).MatchString(declared) {
			t.Errorf("package version has no variable %s, which is stamped", stamp[1])
		}
	}
	for _, name := range []string{"gitVersion", "gitCommit", "gitTreeState", "buildDate", "goProxy", "releases", "localConfig"} {
		if !found[name] {
			t.Errorf("%s is not stamped", name)
		}
	}
}
