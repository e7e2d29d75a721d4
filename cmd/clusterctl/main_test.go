package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asProgram makes the binary of this test clusterctl itself.
const asProgram = "TEST_AS_CLUSTERCTL"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// program returns clusterctl with these arguments, in an empty home directory.
func program(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(t.Context(), self, args...)
	c.Env = []string{asProgram + "=1", "HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, ".config"), "PATH=" + os.Getenv("PATH")}
	c.Stdout, c.Stderr = &stdout, &stderr
	return c, &stdout, &stderr
}

// Scripts depend on the exit status, and on which output has what.
func TestExitStatus(t *testing.T) {
	for _, tt := range []struct {
		reason         string
		args           []string
		env            string
		status         int
		stdout, stderr string
	}{
		{reason: "success", args: []string{"version", "-o", "short"}, stdout: "v"},
		{reason: "help is no error", args: []string{"move", "--help"}, stdout: "Usage:"},
		{reason: "an unknown command", args: []string{"mvoe"}, status: 1, stderr: "Error: "},
		{reason: "an unknown flag", args: []string{"version", "--no-such-flag"}, status: 1, stderr: "Error: "},
		{reason: "a command that fails", args: []string{"config", "repositories", "--config", "/does/not/exist.yaml"}, status: 1, stderr: "Error: "},
		{reason: "no kubeconfig", args: []string{"describe", "cluster", "c"}, status: 1, stderr: "Error: "},
		{reason: "a log level that is not a number", args: []string{"version"}, env: "CLUSTERCTL_LOG_LEVEL=high", status: 1, stderr: "Error: "},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			c, stdout, stderr := program(t, tt.args...)
			c.Env = append(c.Env, tt.env)
			err := c.Run()
			if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if status := c.ProcessState.ExitCode(); status != tt.status {
				t.Errorf("status %d, want %d\n%s%s", status, tt.status, stdout, stderr)
			}
			if !strings.Contains(stdout.String(), tt.stdout) || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("stdout %q, stderr %q", stdout, stderr)
			}
			if tt.status != 0 && stdout.Len() > 0 {
				t.Errorf("an error is not a result: stdout %q", stdout)
			}
		})
	}
}

// A signal ends a request that hangs, and the program says so.
func TestSignal(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			asked, end := make(chan struct{}, 10), make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				asked <- struct{}{}
				<-end
			}))
			defer server.Close()
			defer close(end)
			c, stdout, stderr := program(t, "config", "repositories", "--config", server.URL+"/clusterctl.yaml")
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			<-asked
			begun := time.Now()
			if err := c.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			_ = c.Wait()
			if status := c.ProcessState.ExitCode(); status != 1 || !strings.Contains(stderr.String(), "Error: ") {
				t.Errorf("status %d, stderr %q", status, stderr)
			}
			if took := time.Since(begun); took > 20*time.Second || stdout.Len() > 0 {
				t.Errorf("it took %s; stdout %q", took, fmt.Sprint(stdout))
			}
		})
	}
}
