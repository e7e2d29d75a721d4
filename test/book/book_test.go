package book

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

const (
	// folder is the folder of the quick start in the pages.
	folder = ".quickstart"
	// spare is the part of the test timeout that is reserved for stopping processes.
	spare = 20 * time.Second
)

// alone are pages that run before all others, because these would see what they change, the installed providers, or because they need the
// providers of the quick start, and no others.
var alone = map[string]bool{"repositories.md": true, "upgrade.md": true, "move.md": true}

// TestPages runs the README, which starts a management cluster, and then all pages of the book, each in its own shell, side by side. The
// folder of the quick start is a temporary one, so that a user's own is not changed.
func TestPages(t *testing.T) {
	r := newReader(t)
	pages, err := read(r.root, "docs/book/*.md")
	if err != nil {
		t.Fatal(err)
	}
	first, err := read(r.root, "README.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.stop(t) })
	var quickstart string
	started := t.Run("README.md", func(t *testing.T) {
		output := strings.ReplaceAll(r.follow(t, first[0].script()), r.quickstart, folder)
		quickstart = output
		for _, b := range first[0].blocks {
			if b.mark == "text" {
				for _, line := range unseen(b.code, output) {
					t.Errorf("README.md shows a line that is not in the output: %s", line)
				}
			}
		}
	})
	if !started {
		return
	}
	r.follow(t, "export KUBECONFIG="+folder+"/kubeconfig\n"+proposed(t, quickstart))
	t.Run("book", func(t *testing.T) {
		for _, p := range pages {
			if p.script() == "" {
				continue
			}
			t.Run(filepath.Base(p.name), func(t *testing.T) {
				if !alone[filepath.Base(p.name)] {
					t.Parallel()
				}
				r.follow(t, p.script())
			})
		}
	})
	left := r.follow(t, "bin/capi kubectl --kubeconfig "+folder+"/kubeconfig get clusters,clusterclasses -A -o name")
	want := "cluster.cluster.x-k8s.io/demo\nclusterclass.cluster.x-k8s.io/in-memory\n"
	if left != want {
		t.Errorf("pages left more than the quick start's cluster:\n%s", left)
	}
}

// proposed returns the commands of clusterctl that the quick start has printed as next steps, as they are, up to what would create or delete
// something, or write a file.
func proposed(t *testing.T, output string) string {
	t.Helper()
	script, verbs := "set -e\n", map[string]bool{}
	for line := range strings.Lines(output) {
		command, ok := strings.CutPrefix(line, "  bin/clusterctl ")
		verb, _, _ := strings.Cut(command, " ")
		if !ok || verb == "create" || verb == "delete" {
			continue
		}
		verbs[verb] = true
		command, _, _ = strings.Cut(strings.TrimSpace(command), " | kubectl apply")
		command, _, _ = strings.Cut(command, " > ")
		script += "bin/clusterctl " + command + " > /dev/null\n"
	}
	for _, verb := range []string{"generate", "get", "describe"} {
		if !verbs[verb] {
			t.Errorf("the quick start proposes no `clusterctl %s`:\n%s", verb, output)
		}
	}
	return script
}

// reader runs the commands of pages.
type reader struct {
	root, quickstart string
	environment      []string
	// life is a pipe that all started processes hold open: it is closed when the last one exits.
	life, held *os.File
}

func newReader(t *testing.T) *reader {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	// Otherwise the quick start would build it, which takes minutes.
	if _, err := os.Stat(filepath.Join(root, "bin", "capi")); err != nil {
		if os.Getenv(testenv.RequireVariable) != "" {
			t.Fatalf("bin/capi is required: %v", err)
		}
		t.Skipf("bin/capi is required: run `make bin/capi`: %v", err)
	}
	r := &reader{root: root, quickstart: filepath.Join(t.TempDir(), "quickstart")}
	if r.life, r.held, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		// make and clusterctl in pages must not inherit these.
		if !slices.Contains([]string{"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "KUBECONFIG", "CLUSTER_NAME"}, name) {
			r.environment = append(r.environment, variable)
		}
	}
	r.environment = append(r.environment, "QUICKSTART_DIR="+r.quickstart, "XDG_CONFIG_HOME="+t.TempDir(), "CLUSTERCTL_DISABLE_VERSIONCHECK=true")
	return r
}

// follow runs a script in the root of the repository, and returns its output.
func (r *reader) follow(t *testing.T, script string) string {
	t.Helper()
	ctx := t.Context()
	if deadline, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-spare))
		defer cancel()
	}
	relative, err := filepath.Rel(r.root, r.quickstart)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", strings.ReplaceAll(script, folder, relative))
	cmd.Dir, cmd.Env, cmd.ExtraFiles = r.root, r.environment, []*os.File{r.held}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// stop stops the management cluster, if it was started.
func (r *reader) stop(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(r.quickstart, "pid"))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	pid, parseErr := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err := errors.Join(err, parseErr, syscall.Kill(pid, syscall.SIGTERM), r.held.Close(), r.life.SetReadDeadline(time.Now().Add(spare))); err != nil {
		t.Fatal(err)
	}
	if _, err := r.life.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the management cluster did not stop: %v", errors.Join(err, syscall.Kill(pid, syscall.SIGKILL)))
	}
}
