package importpaths

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The lines of go.mod by which a program gets the root module, or the module for types alone, from this repository.
const (
	root  = "replace sigs.k8s.io/cluster-api => %[1]s\n\nrequire sigs.k8s.io/cluster-api v0.0.0\n"
	types = "replace sigs.k8s.io/cluster-api/api => %[1]s/modules/api\n\nrequire sigs.k8s.io/cluster-api/api v0.0.0\n"
)

// outside returns the directory of a program in a module of its own.
func outside(t *testing.T, program, module, sums string) string {
	t.Helper()
	dir := t.TempDir()
	repository, err := filepath.Abs(filepath.Join("..", ".."))
	must(t, err)
	source, err := os.ReadFile(filepath.Join("testdata", program, "main.go"))
	must(t, err)
	known, err := os.ReadFile(filepath.Join(repository, sums))
	must(t, err)
	for name, content := range map[string]string{
		"main.go": string(source), "go.sum": string(known),
		"go.mod": "module example.org/program\n\ngo 1.26\n\n" + fmt.Sprintf(module, repository),
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

// run runs the go command in a directory, without downloads, and returns its output.
func run(t *testing.T, dir string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", arguments...)
	command.Dir, command.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GOWORK=off")
	var failure strings.Builder
	command.Stderr = &failure
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(arguments, " "), err, failure.String())
	}
	return string(out)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
