package golang_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/golang"
)

// publish writes a version of a module into a folder that the go command uses as a module proxy.
func publish(t *testing.T, proxy, path, version string, files map[string]string) {
	t.Helper()
	source := t.TempDir()
	for name, content := range files {
		write(t, filepath.Join(source, name), content)
	}
	dir := filepath.Join(proxy, path, "@v")
	write(t, filepath.Join(dir, version+".info"), fmt.Sprintf(`{"Version": %q}`, version))
	write(t, filepath.Join(dir, version+".mod"), files["go.mod"])
	var archive bytes.Buffer
	if err := zip.CreateFromDir(&archive, module.Version{Path: path, Version: version}, source); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, version+".zip"), archive.String())
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// proxy serves example.com/main, which replaces example.com/staged by a folder, as Kubernetes does with its libraries.
func proxy(t *testing.T) {
	t.Helper()
	dir, cache := t.TempDir(), t.TempDir()
	t.Cleanup(func() { // the go command makes folders of modules read-only
		_ = filepath.WalkDir(cache, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				err = os.Chmod(path, 0o755)
			}
			return err
		})
	})
	t.Setenv("GOPROXY", "file://"+dir)
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOMODCACHE", cache)
	publish(t, dir, "example.com/main", "v1.2.3", map[string]string{
		"go.mod":        "module example.com/main\n\ngo 1.24.0\n\nrequire example.com/staged v0.0.0\n\nreplace example.com/staged => ./staging\n",
		"main.go":       "package main\n\nimport \"example.com/staged\"\n\nfunc main() { println(staged.Version) }\n",
		"words/word.go": "package words\n\nvar Word = \"none\"\n",
	})
	publish(t, dir, "example.com/staged", "v0.2.3", map[string]string{
		"go.mod": "module example.com/staged\n\ngo 1.24.0\n", "staged.go": "package staged\n\nconst Version = \"v0.2.3\"\n",
	})
}

func build(t *testing.T, p golang.Program) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), p.Name)
	if err := p.Build(t.Context(), t.TempDir(), path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBuildPackage(t *testing.T) {
	proxy(t)
	p := golang.Program{Name: "main", Module: module.Version{Path: "example.com/main", Version: "v1.2.3"}, Package: "example.com/main", Staged: "v0.2.3"}
	first, second := build(t, p), build(t, p)
	out, err := exec.Command(first).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "v0.2.3" {
		t.Errorf("the program must have the published version of what its module replaces, got %q, %v", out, err)
	}
	one, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := os.ReadFile(second); err != nil || !bytes.Equal(one, other) {
		t.Errorf("builds in two folders must give the same executable, %v", err)
	}
}

func TestBuildSource(t *testing.T) {
	proxy(t)
	out, err := exec.Command(build(t, golang.Program{
		Name: "source", Module: module.Version{Path: "example.com/main", Version: "v1.2.3"}, Staged: "v0.2.3",
		Source:    fstest.MapFS{"main.go": {Data: []byte("package main\n\nimport \"example.com/main/words\"\n\nfunc main() { println(words.Word) }\n")}},
		Variables: map[string]string{"example.com/main/words.Word": "stamped"},
	})).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "stamped" {
		t.Errorf("got %q, %v, want the variable that is set", out, err)
	}
}

func TestBuildUnknownVersion(t *testing.T) {
	proxy(t)
	p := golang.Program{Name: "main", Module: module.Version{Path: "example.com/main", Version: "v1.9.9"}, Package: "example.com/main"}
	err := p.Build(t.Context(), t.TempDir(), filepath.Join(t.TempDir(), "main"))
	if err == nil || !strings.Contains(err.Error(), "check the version") {
		t.Errorf("the error must say what to do, got %v", err)
	}
}

func TestInputs(t *testing.T) {
	p := golang.Program{Name: "main", Module: module.Version{Path: "example.com/main", Version: "v1.2.3"}, Source: fstest.MapFS{"main.go": {Data: []byte("one")}}}
	one, err := p.Inputs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.Source = fstest.MapFS{"main.go": {Data: []byte("other")}}
	other, err := p.Inputs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(one) == fmt.Sprint(other) {
		t.Error("the source must be one of the inputs")
	}
}
