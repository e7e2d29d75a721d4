// Package debian downloads Debian packages and installs them into root file systems, with mmdebstrap.
package debian

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// Release is the Debian release of all images.
const Release = "bookworm"

// System is a root file system.
type System struct {
	// Packages are installed, with what they depend on and what is essential for Debian.
	Packages []string
	// Extract only unpacks the packages, with what they depend on: no essential packages, and no scripts are executed.
	Extract bool
	// Mirror is the URL of the packages.
	Mirror string
	// Architecture is Debian's name of it.
	Architecture string
}

// Architecture returns Debian's name for the architecture of this machine.
func Architecture() string { return runtime.GOARCH }

// mirrorPattern matches URLs that end in "debian", unlike that of security updates.
var mirrorPattern = regexp.MustCompile(`https?://\S+/debian/?(\s|$)`)

// Mirror returns the mirror that apt is configured with, in the file system of a machine. It is empty if there is none, as on
// machines that are not Debian.
func Mirror(machine fs.FS) string {
	names, _ := fs.Glob(machine, "etc/apt/sources.list.d/*")
	for _, name := range append([]string{"etc/apt/sources.list"}, names...) {
		content, err := fs.ReadFile(machine, name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(content)) {
			if found := mirrorPattern.FindString(line); found != "" && !strings.HasPrefix(line, "#") {
				return strings.TrimRight(strings.TrimSpace(found), "/")
			}
		}
	}
	return ""
}

// Install installs mmdebstrap with apt, if it is not installed.
func Install(ctx context.Context) error {
	if _, err := exec.LookPath("mmdebstrap"); err == nil {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return errors.New("mmdebstrap is required to install Debian packages into an image: run `apt-get install mmdebstrap` as root")
	}
	script := "apt-get update && apt-get install -y --no-install-recommends mmdebstrap"
	out, err := exec.CommandContext(ctx, "sh", "-c", script).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot install mmdebstrap: %w: %s", err, lastLines(string(out), 3))
	}
	return nil
}

// Build writes the file system as a tar archive. It is reproducible as long as the mirror has the same packages: mmdebstrap
// sets times to the given one, and removes caches, logs and IDs.
func (s System) Build(ctx context.Context, path string, modified time.Time) error {
	cmd := exec.CommandContext(ctx, "mmdebstrap", s.arguments(ctx, path)...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", modified.Unix()), "TMPDIR="+filepath.Dir(path))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot install Debian packages from %s: mmdebstrap: %w: %s", s.Mirror, err, lastLines(string(out), 5))
	}
	return nil
}

func (s System) arguments(ctx context.Context, path string) []string {
	args := []string{
		"--format=tar", "--architectures=" + s.Architecture, "--include=" + strings.Join(s.Packages, ","),
		"--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
	}
	if s.Extract {
		args = append(args, "--variant=extract")
	} else {
		args = append(args, "--variant=essential")
	}
	for _, dir := range []string{"doc", "man", "locale", "info", "lintian", "bash-completion"} {
		args = append(args, "--dpkgopt=path-exclude=/usr/share/"+dir+"/*")
	}
	for _, option := range configuration(ctx) {
		args = append(args, "--aptopt="+option)
	}
	return append(args, Release, path, s.Mirror)
}

// configuration returns the options for downloads that apt of this machine is configured with, such as a proxy.
func configuration(ctx context.Context) []string {
	out, err := exec.CommandContext(ctx, "apt-config", "dump", "--format", "%f \"%v\"%n", "Acquire").Output()
	if err != nil {
		return nil
	}
	var options []string
	for scanner := bufio.NewScanner(strings.NewReader(string(out))); scanner.Scan(); {
		if option := scanner.Text(); acquirePattern.MatchString(option) {
			options = append(options, option)
		}
	}
	return options
}

// acquirePattern matches the options that apply to any release.
var acquirePattern = regexp.MustCompile(`^Acquire::(https?::|Retries|Check-|Queue-|ForceIPv)\S* "[^"]+"$`)

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
