package command_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// runs runs the program to its end, and returns what it printed.
func runs(t *testing.T, args ...string) (out, errOut string, err error) {
	t.Helper()
	cmd := program(t, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

// wantRuns is runs for a command that must succeed.
func wantRuns(t *testing.T, args ...string) string {
	t.Helper()
	out, errOut, err := runs(t, args...)
	if err != nil || errOut != "" {
		t.Fatalf("capi %s: %v, %s", strings.Join(args, " "), err, errOut)
	}
	return out
}

// wantRefused is runs for a command that must fail with this message.
func wantRefused(t *testing.T, want string, args ...string) {
	t.Helper()
	if out, errOut, err := runs(t, args...); err == nil || !strings.Contains(errOut, want) || out != "" {
		t.Errorf("capi %s: %v, %q, %q; want an error with %q", strings.Join(args, " "), err, out, errOut, want)
	}
}

// A backup is made while capi runs, and another machine goes on with it. Clients never see an older state as a newer one.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	running := serve(t, "--data-dir", path("mgmt"), "--components=false", "--unsafe-no-fsync")
	kubeconfig := filepath.Join(path("mgmt"), "kubeconfig")
	c := client(t, kubeconfig)
	if _, err := c.CoreV1().Secrets("default").Create(t.Context(), named("before"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	recipient := strings.TrimSpace(wantRuns(t, "backup", "--generate-key", path("key")))
	wantRefused(t, "exists, and is not replaced", "backup", "--generate-key", path("key"))
	wantRefused(t, "set --recipient or --identity-file", "backup", "--data-dir", path("mgmt"), path("backup"))
	wantRuns(t, "backup", "--data-dir", path("mgmt"), "--recipient", recipient, path("backup"))
	wantNowhere(t, dir, marker)

	if _, err := c.CoreV1().Secrets("default").Create(t.Context(), named("after"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	last, err := c.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	restore := []string{"restore", path("backup"), "--identity-file", path("key"), "--data-dir"}
	wantRefused(t, "is in use by capi serve (process ", append(restore, path("mgmt"))...)
	if err := running.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := running.cmd.Wait(); err != nil {
		t.Errorf("capi serve: %v", err)
	}
	wantRefused(t, "is not empty: move it away", append(restore, path("mgmt"))...)
	wantRuns(t, "backup", "--data-dir", path("mgmt"), "--identity-file", path("key"), path("stopped")) // Without a running server.
	if out := wantRuns(t, append(restore, path("restored"))...); !strings.Contains(out, "then run: capi serve --data-dir "+path("restored")) {
		t.Errorf("it printed %s", out)
	}
	serve(t, "--data-dir", path("restored"), "--kubeconfig", path("new"), "--components=false", "--unsafe-no-fsync", "--secure-port", "0")
	wantContinued(t, client(t, kubeconfig), last) // The CA, the address and the credentials are those of before.
	wantRuns(t, "restore", path("stopped"), "--identity-file", path("key"), "--data-dir", path("whole"))
}

func named(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"k": marker}}
}

// wantContinued checks the state after a restore; last is the last state before it.
func wantContinued(t *testing.T, c kubernetes.Interface, last *corev1.SecretList) {
	t.Helper()
	secrets, err := c.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(secrets.Items) != 1 || string(secrets.Items[0].Data["k"]) != marker || secrets.Items[0].Name != "before" {
		t.Fatalf("the Secrets are %v, %v", secrets, err)
	}
	if len(secrets.ResourceVersion) <= len(last.ResourceVersion) {
		t.Errorf("resource version %s does not follow %s", secrets.ResourceVersion, last.ResourceVersion)
	}
	watcher, err := c.CoreV1().Secrets("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: last.ResourceVersion})
	if err == nil {
		defer watcher.Stop()
		err = apierrors.FromObject((<-watcher.ResultChan()).Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("a watch from before goes on (%v), it must list again", err)
	}
}

// Whenever a restore is killed, there is no data directory, or the complete one; and the next restore goes on as if nothing had happened.
func TestRestoreIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	running := serve(t, "--data-dir", path("mgmt"), "--components=false", "--unsafe-no-fsync")
	wantRuns(t, "backup", "--generate-key", path("key"))
	wantRuns(t, "backup", "--data-dir", path("mgmt"), "--identity-file", path("key"), path("backup"))
	kill(t, running)
	began := time.Now()
	wantRuns(t, "restore", path("backup"), "--identity-file", path("key"), "--data-dir", path("whole"))
	took := time.Since(began)
	want := len(entries(t, path("whole")))
	const moments = 25
	killed, target := 0, path("restored")
	for moment := range moments + 1 {
		ctx, cancel := context.WithTimeout(t.Context(), took*time.Duration(moment)/moments*5/4)
		cmd := exec.CommandContext(ctx, os.Args[0], "restore", path("backup"), "--identity-file", path("key"), "--data-dir", target)
		cmd.Env = append(os.Environ(), asProgram+"=1")
		err := cmd.Run()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && err != nil {
			killed++
		}
		cancel()
		if _, missing := os.Lstat(target); errors.Is(missing, os.ErrNotExist) {
			continue
		}
		if got := len(entries(t, target)); got != want {
			t.Fatalf("killed at moment %d, the data directory has %d entries, not %d", moment, got, want)
		}
		if err := os.RemoveAll(target); err != nil {
			t.Fatal(err)
		}
	}
	if killed == 0 {
		t.Error("no restore was killed")
	}
	wantRuns(t, "restore", path("backup"), "--identity-file", path("key"), "--data-dir", target)
	for _, entry := range entries(t, dir) {
		if strings.HasPrefix(entry, ".") {
			t.Errorf("left behind: %s", entry)
		}
	}
	kill(t, serve(t, "--data-dir", target, "--components=false", "--unsafe-no-fsync"))
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range found {
		names = append(names, entry.Name())
	}
	return names
}
