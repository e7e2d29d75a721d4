// Package program compiles the programs of this repository for other platforms, reproducibly: executables depend on the source,
// the version and the toolchain, not on the machine, its paths or the user's settings.
package program

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"sigs.k8s.io/cluster-api/sdk/version"
)

const (
	// Clusterctl is the command line.
	Clusterctl = "clusterctl"
	// Capi is the embedded management cluster, in a module of its own.
	Capi = "capi"
)

// Managers returns the programs that run as Deployments.
func Managers() []string {
	return []string{
		"cluster-api-controller", "kubeadm-bootstrap-controller", "kubeadm-control-plane-controller", "capim-manager", "capd-manager",
		"capi-ipam-in-cluster-controller", "capi-fleet-controller", "test-extension", "cluster-api-operator",
	}
}

// All returns every program.
func All() []string { return append(Managers(), Clusterctl, Capi) }

// Platform is an operating system and an architecture, named as Go does.
type Platform struct{ OS, Arch string }

// ParsePlatform parses "linux/amd64".
func ParsePlatform(s string) (Platform, error) {
	os, arch, ok := strings.Cut(s, "/")
	if !ok || os == "" || arch == "" || strings.ContainsAny(arch, "/ ") {
		return Platform{}, fmt.Errorf("platform %q is not an operating system and an architecture, such as linux/amd64", s)
	}
	return Platform{OS: os, Arch: arch}, nil
}

// String returns "linux/amd64".
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Suffix returns "linux-amd64", as in names of files; executables for Windows end with ".exe".
func (p Platform) Suffix() string {
	if p.OS == "windows" {
		return p.OS + "-" + p.Arch + ".exe"
	}
	return p.OS + "-" + p.Arch
}

// Compiler compiles programs of a checkout.
type Compiler struct {
	// Root of the repository.
	Root string
	// Version is stamped into the programs.
	Version string
	// Releases is the address of the releases that they belong to; empty: that of this project.
	Releases string
	Source   Source
}

// Compile writes executables for a platform into a folder, named like the programs, and returns their paths by program. The
// folder must be used for one platform only.
func (c Compiler) Compile(ctx context.Context, p Platform, dir string, programs ...string) (map[string]string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	flags, err := c.linkerFlags(ctx)
	if err != nil {
		return nil, err
	}
	var root []string
	paths := map[string]string{}
	for _, name := range programs {
		paths[name] = filepath.Join(dir, name)
		if p.OS == "windows" {
			paths[name] += ".exe"
		}
		if name != Capi {
			root = append(root, "./cmd/"+name)
		}
	}
	// All programs at once: they share most packages.
	if len(root) > 0 {
		if err := c.build(ctx, p, c.Root, dir, append([]string{"-tags", tags, "-ldflags", flags}, root...)...); err != nil {
			return nil, err
		}
	}
	if _, ok := paths[Capi]; ok {
		stamps, err := run(ctx, filepath.Join(c.Root, "standalone"), nil, "./ldflags.sh")
		if err != nil {
			return nil, err
		}
		if err := c.build(ctx, p, filepath.Join(c.Root, "standalone"), dir, "-ldflags", flags+" "+stamps, "./cmd/"+Capi); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// build compiles packages of a module, with more flags of go build before them.
func (c Compiler) build(ctx context.Context, p Platform, module, dir string, args ...string) error {
	args = append([]string{"build", "-buildvcs=false", "-trimpath", "-o", dir + string(filepath.Separator)}, args...)
	if _, err := run(ctx, module, append(settings(), "GOOS="+p.OS, "GOARCH="+p.Arch), "go", args...); err != nil {
		return fmt.Errorf("cannot compile for %s: %w", p, err)
	}
	return nil
}

// tags are the build tags of programs that do not embed Kubernetes. Without grpcnotrace, an unused debug page of gRPC disables
// dead code elimination of methods: a quarter of a manager.
const tags = "grpcnotrace"

// settings are the environment of the go command, whatever the user has set.
func settings() []string {
	return []string{"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0"}
}

// Toolchain returns the version of Go that compiles, such as "go1.26.0".
func (c Compiler) Toolchain(ctx context.Context) (string, error) {
	return run(ctx, c.Root, settings(), "go", "env", "GOVERSION")
}

// linkerFlags returns flags that stamp the version, and leave out symbol tables and debug information.
func (c Compiler) linkerFlags(ctx context.Context) (string, error) {
	// The default module proxy of clusterctl is the toolchain's, not that of this machine, which may be private.
	proxy, err := run(ctx, c.Root, append(settings(), "GOENV=off", "GOPROXY="), "go", "env", "GOPROXY")
	if err != nil {
		return "", err
	}
	state := "clean"
	if c.Source.Modified {
		state = "dirty"
	}
	flags := []string{"-s", "-w"}
	for _, stamp := range [][2]string{
		{"gitVersion", c.Version}, {"gitCommit", c.Source.Commit}, {"gitTreeState", state},
		{"buildDate", c.Source.Time.Format(time.RFC3339)}, {"goProxy", proxy}, {"releases", c.Releases},
	} {
		flags = append(flags, "-X", "sigs.k8s.io/cluster-api/sdk/version."+stamp[0]+"="+stamp[1])
	}
	return strings.Join(flags, " "), nil
}

// CheckReleases rejects addresses of releases that clusterctl could not read.
func CheckReleases(address string) error {
	if !gitHubReleases.MatchString(address) {
		return fmt.Errorf("%q is not an address of releases on GitHub, such as %s", address, version.DefaultReleases)
	}
	return nil
}

var gitHubReleases = regexp.MustCompile(`^https://github\.com/[\w.-]+/[\w.-]+/releases$`)

// run runs a command with additional environment variables, and returns its output.
func run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args[:min(1, len(args))], ""), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}
