// Package kubeadmtest runs kubeadm of several versions of Kubernetes, for tests of what we write for it. `make kubeadm-programs`
// builds the programs.
//
// What does not belong here: configurations, and expectations about them.
package kubeadmtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const (
	// FolderVariable is the environment variable with the folder of programs, VERSION/kubeadm. Its default is bin/kubeadm in the
	// repository's root.
	FolderVariable = "CAPI_KUBEADM"
	// RequireVariable is the environment variable that, if not empty, makes tests fail without programs instead of skipping them.
	RequireVariable = "CAPI_REQUIRE_KUBEADM"
)

// Program is kubeadm of a version of Kubernetes.
type Program struct {
	// Version is such as v1.36.3.
	Version string
	// Path is the program.
	Path string
}

// Programs returns all programs that are available. Without any, or without the right to change the root folder, which kubeadm
// does here, the test is skipped, or fails if RequireVariable is set.
func Programs(t testing.TB) []Program {
	t.Helper()
	folder := os.Getenv(FolderVariable)
	if folder == "" {
		folder = filepath.Join(repository(t), "bin", "kubeadm")
	}
	paths, err := filepath.Glob(filepath.Join(folder, "v*", "kubeadm"))
	if err != nil {
		t.Fatal(err)
	}
	missing := ""
	switch {
	case len(paths) == 0:
		missing = "no kubeadm in " + folder + ": run `make kubeadm-programs`, or set " + FolderVariable
	case os.Geteuid() != 0:
		missing = "kubeadm must run as root"
	}
	if missing != "" && os.Getenv(RequireVariable) != "" {
		t.Fatal(missing)
	}
	if missing != "" {
		t.Skip(missing)
	}
	var out []Program
	for _, path := range paths {
		out = append(out, Program{Version: filepath.Base(filepath.Dir(path)), Path: path})
	}
	return out
}

// repository returns the root of the repository: the folder with the Makefile.
func repository(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "Makefile")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("this folder is not in the repository")
	return ""
}

// Minor returns the minor version.
func (p Program) Minor() int {
	minor, _, _ := strings.Cut(strings.TrimPrefix(p.Version, "v1."), ".")
	n, err := strconv.Atoi(minor)
	if err != nil {
		panic("the folder of kubeadm " + p.Version + " is not named for a version")
	}
	return n
}

// Machine is a root folder that kubeadm uses as a machine's.
type Machine struct {
	// Root is the folder.
	Root    string
	program Program
}

// NewMachine returns a machine that has a default route, which kubeadm takes the address from, and no other file.
func (p Program) NewMachine(t testing.TB) *Machine {
	t.Helper()
	m := &Machine{Root: t.TempDir(), program: p}
	for _, path := range []string{"/proc/net/route", "/proc/net/ipv6_route"} {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // IPv6 may be disabled.
		}
		m.Write(t, path, string(content))
	}
	if err := os.Mkdir(filepath.Join(m.Root, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	return m
}

// Write writes a file.
func (m *Machine) Write(t testing.TB, path, content string) {
	t.Helper()
	path = filepath.Join(m.Root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Read reads a file.
func (m *Machine) Read(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(m.Root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Run runs kubeadm, and returns what it prints. The test fails if kubeadm does, or if it warns unexpectedly.
func (m *Machine) Run(t testing.TB, args ...string) string {
	t.Helper()
	out, stderr, err := m.Try(t, args...)
	if err != nil {
		t.Fatalf("kubeadm %s %s: %v: %s", m.program.Version, strings.Join(args, " "), err, stderr)
	}
	for _, warning := range unexpected(stderr) {
		t.Errorf("kubeadm %s %s warns: %s", m.program.Version, strings.Join(args, " "), warning)
	}
	return out
}

// Try runs kubeadm, and returns what it prints, and what it writes to standard error.
func (m *Machine) Try(t testing.TB, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), m.program.Path, append(args, "--rootfs", m.Root)...)
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	// Nothing is downloaded: the configuration has a version.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	err = cmd.Run()
	return out.String(), errors.String(), err
}

// unexpected returns the lines that kubeadm wrote to standard error, without those that have a reason.
func unexpected(stderr string) []string {
	var out []string
	for line := range strings.Lines(stderr) {
		if line = strings.TrimSpace(line); line != "" && !expected().MatchString(line) {
			out = append(out, line)
		}
	}
	return out
}

// expected matches warnings that are not about our configuration.
func expected() *regexp.Regexp {
	return regexp.MustCompile(strings.Join([]string{
		"Using dry-run directory",                     // Where kubeadm writes in a dry run.
		"no supported init system detected, skipping", // The folder has no systemd,
		"cannot obtain the version of the kubelet",    // no kubelet,
		"cannot execute 'docker info",                 // and no Docker, which was kubeadm's default up to v1.23.
	}, "|"))
}
