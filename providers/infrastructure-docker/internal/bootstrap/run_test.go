package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/internal/userdata"
)

// host runs commands on this machine instead of a container. Its files are in a temporary folder.
type host struct {
	layout
	root string
	// started is called with each process.
	started func(*exec.Cmd)
	// truncate, if positive, is how much of the input arrives.
	truncate int64
	// path is the folder with all programs.
	path string
}

func newHost(t *testing.T) *host {
	t.Helper()
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	h := &host{
		layout: layout{state: at("state"), scratch: at("scratch"), log: at("var/log"), sentinel: at("run/success")},
		root:   root, path: at("bin"),
	}
	if err := os.MkdirAll(h.path, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, program := range programs() {
		found, err := exec.LookPath(program)
		if err != nil {
			t.Skipf("requires %s, as node images have it", program)
		}
		if err := os.Symlink(found, filepath.Join(h.path, program)); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// programs are what attempts need of an image, and tests. There is no kubeadm and no container runtime.
func programs() []string {
	return []string{"base64", "cat", "chmod", "chown", "cp", "flock", "mkdir", "mv", "rm", "setsid", "sh", "sha256sum", "sleep", "tail", "timeout", "false", "true"}
}

// Exec implements Container. As in Docker, the process outlives the context.
func (h *host) Exec(ctx context.Context, _ string, c engine.Command) error {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env = []string{"PATH=" + h.path}
	var in io.Reader = c.Stdin
	if h.truncate > 0 {
		in = io.LimitReader(in, h.truncate)
	}
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	if h.started != nil {
		h.started(cmd)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return err
		}
		_, err = io.Copy(c.Stdout, &out)
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *host) run(t *testing.T, p *Plan, number int) Result {
	t.Helper()
	r, err := run(t.Context(), h, "c", p, number, time.Minute, h.layout)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// succeed is the command that creates the sentinel file.
func (h *host) succeed() Command {
	return Command{Name: "kubeadm", Shell: "echo success > " + userdata.Quote(h.sentinel)}
}

// count is a command that counts how often it runs.
func (h *host) count() Command {
	return Command{Name: "count", Shell: "echo x >>" + userdata.Quote(filepath.Join(h.root, "count"))}
}

func (h *host) counted(t *testing.T) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(h.root, "count"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(content), "x")
}

func (h *host) failing(name, text string) Command { return Command{Name: name, Shell: text} }

var ignoreLog = cmpopts.IgnoreFields(Result{}, "Log")

func TestRunWritesFiles(t *testing.T) {
	h := newHost(t)
	at := func(name string) string { return filepath.Join(h.root, name) }
	owner := fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
	if err := os.WriteFile(at("appended"), []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := string([]byte{0, 1, 2, 0xff, '\n', '\''})
	p := &Plan{
		Files: []File{
			{Path: at("a b/it's/$(x)"), Owner: owner, Mode: 0o640, Content: []byte("EOF\nEND\n$HOME `x` \\n")},
			{Path: at("binary"), Owner: owner, Mode: 0o755, Content: []byte(binary)},
			{Path: at("large"), Owner: owner, Mode: 0o600, Content: bytes.Repeat([]byte("0123456789"), 100_000)},
			{Path: at("empty"), Owner: owner, Mode: 0o600},
			{Path: at("appended"), Owner: owner, Mode: 0o644, Content: []byte("after\n"), Append: true},
			{Path: at("appended"), Owner: owner, Mode: 0o644, Content: []byte("last\n"), Append: true},
		},
		Commands: []Command{
			{Name: "one", Args: []string{"/bin/sh", "-c", `printf '%s|' "$@" >` + userdata.Quote(at("args")), "x", "it's", "$HOME", "a b"}},
			{Name: "two", Shell: "# a comment\nx='it'\\''s'; printf %s \"$x\" >" + userdata.Quote(at("shell"))},
			h.succeed(),
		},
		Ignored: []string{"it's ignored"},
	}
	r := h.run(t, p, 1)
	if diff := cmp.Diff(Result{Number: 1, Bootstrapped: true, Step: "the check for " + h.sentinel, Timeout: time.Minute}, r, ignoreLog); diff != "" {
		t.Fatalf("-want +got:\n%s\n%s", diff, r.Log)
	}
	if !strings.Contains(r.Log, "Ignored in a container: it's ignored\n") {
		t.Errorf("log:\n%s", r.Log)
	}
	want := map[string]string{
		"a b/it's/$(x)": "EOF\nEND\n$HOME `x` \\n", "binary": binary, "large": strings.Repeat("0123456789", 100_000), "empty": "",
		"appended": "before\nafter\nlast\n", "args": "it's|$HOME|a b|", "shell": "it's",
	}
	for name, content := range want {
		got, err := os.ReadFile(at(name))
		if err != nil || string(got) != content {
			t.Errorf("%s: %.100q, %v", name, got, err)
		}
	}
	for name, mode := range map[string]os.FileMode{"a b/it's/$(x)": 0o640, "binary": 0o755, "large": 0o600, "appended": 0o644, "var/log": 0o600} {
		if info, err := os.Stat(at(name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if _, err := os.Stat(h.scratch); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the script with its secrets is left: %v", err)
	}
}

func TestRunFails(t *testing.T) {
	for _, tt := range []struct {
		reason string
		plan   func(h *host) *Plan
		want   Result
		why    string
		log    string
	}{
		{reason: "a command fails, and the following do not run", plan: func(h *host) *Plan {
			return &Plan{Commands: []Command{h.failing("kubeadm init", "echo 'no route'; exit 3"), h.succeed()}}
		}, want: Result{Number: 1, Code: 3, Step: "kubeadm init"}, why: "kubeadm init failed with exit code 3", log: "no route"},
		{reason: "a command does not exist", plan: func(h *host) *Plan {
			return &Plan{Commands: []Command{{Name: "x", Args: []string{"/does/not/exist"}}, h.succeed()}}
		}, want: Result{Number: 1, Code: 127, Step: "x"}, why: "x failed with exit code 127"},
		{reason: "a file cannot be written", plan: func(h *host) *Plan {
			return &Plan{Files: []File{{Path: "/proc/x", Mode: 0o600}}, Commands: []Command{h.succeed()}}
		}, want: Result{Number: 1, Code: 1, Step: "file /proc/x"}, why: "file /proc/x failed with exit code 1", log: "cannot write /proc/x"},
		{reason: "an owner does not exist", plan: func(h *host) *Plan {
			return &Plan{Files: []File{{Path: h.root + "/x", Mode: 0o600, Owner: "nosuchuser"}}}
		}, want: Result{Number: 1, Code: 1, Step: "file ROOT/x"}, why: "file ROOT/x failed with exit code 1", log: "cannot set the owner"},
		{reason: "commands of bootstrap data without the sentinel", plan: func(*host) *Plan {
			return &Plan{Commands: []Command{{Name: "x", Args: []string{"true"}}}}
		}, want: Result{Number: 1, Code: 1, Step: "the check for ROOT/run/success"}, why: "the check for ROOT/run/success failed with exit code 1", log: "none created"},
		{reason: "a command after kubeadm fails: the machine has bootstrapped", plan: func(h *host) *Plan {
			return &Plan{Commands: []Command{h.succeed(), h.failing("post", "exit 9")}}
		}, want: Result{Number: 1, Code: 9, Step: "post", Bootstrapped: true}, why: "post failed with exit code 9"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			h := newHost(t)
			r := h.run(t, tt.plan(h), 1)
			r.Step = strings.ReplaceAll(r.Step, h.root, "ROOT")
			tt.want.Timeout = time.Minute
			if diff := cmp.Diff(tt.want, r, ignoreLog); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if r.Why() != tt.why || !strings.Contains(r.Log, tt.log) {
				t.Errorf("%q, log:\n%s", r.Why(), r.Log)
			}
		})
	}
}

func TestTimeLimit(t *testing.T) {
	h := newHost(t)
	r, err := run(t.Context(), h, "c", &Plan{Commands: []Command{{Name: "x", Args: []string{"sleep", "1000"}}}}, 1, time.Second, h.layout)
	if err != nil || r.Why() != "x did not end within 1s" || r.Bootstrapped {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestOnce checks that attempts of one number run once, and that later ones start where the first began.
func TestOnce(t *testing.T) {
	h := newHost(t)
	appended := filepath.Join(h.root, "appended")
	owner := fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
	p := &Plan{
		Files:    []File{{Path: appended, Owner: owner, Mode: 0o600, Content: []byte("x\n"), Append: true}},
		Commands: []Command{h.count(), {Name: "x", Args: []string{"false"}}},
	}
	for range 3 {
		if r := h.run(t, p, 1); r.Number != 1 || r.Code != 1 {
			t.Fatalf("%+v", r)
		}
	}
	if got := h.counted(t); got != 1 {
		t.Errorf("the attempt ran %d times", got)
	}
	p.Commands[1] = h.succeed()
	if r := h.run(t, p, 2); r.Number != 2 || r.Code != 0 || h.counted(t) != 2 {
		t.Errorf("second attempt: %+v, %d in all", r, h.counted(t))
	}
	if content, err := os.ReadFile(appended); err != nil || string(content) != "x\n" {
		t.Errorf("appended %q, %v", content, err)
	}
	if r := h.run(t, p, 1); r.Number != 2 || !r.Bootstrapped {
		t.Errorf("who does not know of the second attempt gets %+v", r)
	}
	for _, log := range []string{h.log, h.log + ".1"} {
		if _, err := os.Stat(log); err != nil {
			t.Error(err)
		}
	}
}

// pipe creates a named pipe, on which commands wait.
func (h *host) pipe(t *testing.T, name string) string {
	t.Helper()
	at := filepath.Join(h.root, name)
	if err := syscall.Mkfifo(at, 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}

// TestKilled checks that an attempt continues when the process that started it is killed, that others wait for its result, and
// that it does not run twice.
func TestKilled(t *testing.T) {
	for _, tt := range []struct {
		reason string
		kill   func(*exec.Cmd) error
	}{
		{"the manager was killed: its request breaks, and the process in the container goes on", func(*exec.Cmd) error { return nil }},
		{"the runtime terminates the process of a broken request", func(c *exec.Cmd) error { return c.Process.Signal(syscall.SIGTERM) }},
		{"the process is killed", func(c *exec.Cmd) error { return c.Process.Kill() }},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			h := newHost(t)
			begun, proceed := h.pipe(t, "begun"), h.pipe(t, "proceed")
			p := &Plan{Commands: []Command{
				h.count(), {Name: "wait", Shell: "echo x >" + userdata.Quote(begun) + "; cat " + userdata.Quote(proceed)}, h.succeed(),
			}}
			started := make(chan *exec.Cmd, 1)
			h.started = func(c *exec.Cmd) { started <- c }
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error, 1)
			go func() {
				_, err := run(ctx, h, "c", p, 1, time.Minute, h.layout)
				failed <- err
			}()
			if _, err := os.ReadFile(begun); err != nil {
				t.Fatal(err)
			}
			if err := tt.kill(<-started); err != nil {
				t.Fatal(err)
			}
			cancel()
			if err := <-failed; err == nil {
				t.Fatal("the first request got a result")
			}
			h.started = nil
			results := make(chan Result, 2)
			for range 2 {
				go func() {
					r, err := run(t.Context(), h, "c", p, 1, time.Minute, h.layout)
					if err != nil {
						t.Error(err)
					}
					results <- r
				}()
			}
			if err := os.WriteFile(proceed, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if r := <-results; r.Number != 1 || !r.Bootstrapped || r.Code != 0 {
					t.Errorf("%+v", r)
				}
			}
			if got := h.counted(t); got != 1 {
				t.Errorf("the attempt ran %d times", got)
			}
		})
	}
}

// TestDaemons checks that a daemon that a command leaves behind does not keep the lock.
func TestDaemons(t *testing.T) {
	h := newHost(t)
	stop := h.pipe(t, "stop")
	p := &Plan{Commands: []Command{{Name: "x", Shell: "(cat " + userdata.Quote(stop) + " >/dev/null 2>&1 &)"}, h.succeed()}}
	if r := h.run(t, p, 1); !r.Bootstrapped {
		t.Errorf("%+v", r)
	}
	if err := os.WriteFile(stop, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTruncated checks that a script that did not arrive as a whole is not run.
func TestTruncated(t *testing.T) {
	h := newHost(t)
	p := &Plan{Commands: []Command{h.count(), h.count(), h.succeed()}}
	for _, n := range []int64{1, 100, int64(len(p.script(h.layout))) - 1} {
		h.truncate = n
		if r, err := run(t.Context(), h, "c", p, 1, time.Minute, h.layout); err == nil {
			t.Errorf("after %d bytes: %+v", n, r)
		}
	}
	h.truncate = 0
	if r := h.run(t, p, 1); r.Number != 1 || !r.Bootstrapped || h.counted(t) != 2 {
		t.Errorf("%+v, %d commands", r, h.counted(t))
	}
}

// fakeKubeadm logs its arguments.
func (h *host) fakeKubeadm(t *testing.T) (calls func() string) {
	t.Helper()
	log := filepath.Join(h.root, "kubeadm.log")
	if err := os.WriteFile(filepath.Join(h.path, "kubeadm"), []byte("#!/bin/sh\necho \"$@\" >>"+log+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return func() string {
		content, err := os.ReadFile(log)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return string(content)
	}
}

func TestReset(t *testing.T) {
	h := newHost(t)
	calls := h.fakeKubeadm(t)
	p := &Plan{Commands: []Command{{Name: "join", Args: []string{"kubeadm", "join"}}, {Name: "x", Args: []string{"false"}}}}
	h.run(t, p, 1)
	h.run(t, p, 2)
	if diff := cmp.Diff("join\nreset --force\njoin\n", calls()); diff != "" {
		t.Errorf("a failed attempt must be undone before the next, -want +got:\n%s", diff)
	}
}

// TestRestarts simulates restarts of the container, which end all processes and empty /run.
func TestRestarts(t *testing.T) {
	for _, tt := range []struct {
		reason string
		plan   func(h *host) *Plan
		// before are states to remove, as if the restart came before they were written.
		before []string
		want   Result
		resets bool
	}{
		{reason: "after a success", plan: func(h *host) *Plan { return &Plan{Commands: []Command{h.succeed()}} },
			want: Result{Number: 1, Bootstrapped: true}},
		{reason: "in the attempt", plan: func(h *host) *Plan { return &Plan{Commands: []Command{{Name: "x", Args: []string{"false"}}}} },
			before: []string{"result"}, want: Result{Number: 1, Code: interrupted, Step: "x"}, resets: true},
		{reason: "after kubeadm, before the result", plan: func(h *host) *Plan {
			return &Plan{Commands: []Command{h.succeed(), {Name: "post", Args: []string{"true"}}}}
		}, before: []string{"result"}, want: Result{Number: 1, Code: interrupted, Bootstrapped: true}},
		{reason: "after a failure that followed kubeadm", plan: func(h *host) *Plan {
			return &Plan{Commands: []Command{h.succeed(), {Name: "post", Args: []string{"false"}}}}
		}, want: Result{Number: 1, Code: 1, Step: "post", Bootstrapped: true}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			h := newHost(t)
			calls := h.fakeKubeadm(t)
			p := tt.plan(h)
			h.run(t, p, 1)
			for _, name := range append(tt.before, "lock") {
				if err := os.Remove(filepath.Join(h.state, name)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.RemoveAll(filepath.Dir(h.sentinel)); err != nil {
				t.Fatal(err)
			}
			r := h.run(t, p, 1)
			if tt.want.Step == "" {
				r.Step = ""
			}
			tt.want.Timeout = time.Minute
			if diff := cmp.Diff(tt.want, r, ignoreLog); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			h.run(t, p, 2) // It is not requested if the machine has bootstrapped. It must not harm.
			if got := strings.Contains(calls(), "reset"); got != tt.resets {
				t.Errorf("kubeadm reset: %v, want %v", got, tt.resets)
			}
		})
	}
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		reason, text string
		want         Result
		fails        bool
	}{
		{reason: "a success", text: "2\n0\nyes\nx\nlog\nlog\n", want: Result{Number: 2, Bootstrapped: true, Step: "x", Log: "log\nlog\n"}},
		{reason: "control characters do not reach conditions", text: "1\n1\nno\na\x1b[31mb\x00\r\nl\xff", want: Result{Number: 1, Code: 1, Step: "a [31mb", Log: "l"}},
		{reason: "a step is short", text: "1\n1\nno\n" + strings.Repeat("x", 300) + "\n", want: Result{Number: 1, Code: 1, Step: strings.Repeat("x", 200) + "..."}},
		{reason: "no step was reached", text: "1\ninterrupted\nno\n\n", want: Result{Number: 1, Code: interrupted, Step: "the bootstrap data"}},
		{reason: "nothing", text: "", fails: true},
		{reason: "no number", text: "x\n1\nno\nx\n", fails: true},
		{reason: "a negative number", text: "-1\n1\nno\nx\n", fails: true},
		{reason: "no code", text: "1\n\nno\nx\n", fails: true},
		{reason: "the code of an interruption cannot be faked", text: "1\n-1\nno\nx\n", fails: true},
	} {
		got, err := parse(tt.text)
		if (err != nil) != tt.fails {
			t.Errorf("%s: %v", tt.reason, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" && !tt.fails {
			t.Errorf("%s, -want +got:\n%s", tt.reason, diff)
		}
	}
}
