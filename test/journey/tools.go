package journey

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// Tools are the users' programs, and the repository that they install providers from.
type Tools struct {
	// Root is the path of this repository.
	Root string
	// Capi is the path of the standalone program.
	Capi string
	// Infrastructure is the infrastructure provider of the management cluster.
	Infrastructure string

	clusterctl, config string
}

// build builds clusterctl and a provider repository in dir.
func build(ctx context.Context, root, dir string) (*Tools, error) {
	t := &Tools{
		Root: root, Capi: cmp.Or(os.Getenv(testenv.BinaryVariable), filepath.Join(root, "bin", "capi")),
		clusterctl: filepath.Join(dir, "clusterctl"), config: filepath.Join(dir, "repository", "clusterctl.yaml"),
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", t.clusterctl, "./cmd/clusterctl")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build ./cmd/clusterctl: %w\n%s", err, out)
	}
	if err := release(ctx, root, "v2.0.0", filepath.Dir(t.config)); err != nil {
		return nil, err
	}
	// A deleted Machine that is joining could be held for minutes.
	return t.with(filepath.Dir(t.config), map[string]string{"ETCD_JOIN_TIMEOUT": "2s"})
}

// with returns these tools with variables of clusterctl.yaml, which is copied to dir.
func (t *Tools) with(dir string, variables map[string]string) (*Tools, error) {
	config, err := os.ReadFile(t.config)
	if err != nil {
		return nil, err
	}
	for name, value := range variables {
		config = fmt.Appendf(config, "\n%s: %q\n", name, value)
	}
	out := *t
	out.config = filepath.Join(dir, "clusterctl.yaml")
	return &out, os.WriteFile(out.config, config, 0o600)
}

// Result is the output of a program.
type Result struct {
	Command, Out, Err string
	Failed            bool
}

// String returns the command, the output and the errors.
func (r Result) String() string {
	return fmt.Sprintf("%s (failed: %t)\n%s%s", r.Command, r.Failed, r.Out, r.Err)
}

// Clusterctl runs clusterctl with input and the repository of these tools, without checking for a newer version.
func (t *Tools) Clusterctl(ctx context.Context, input string, args ...string) Result {
	return run(ctx, input, t.clusterctl, append([]string{"--config", t.config}, args...)...)
}

// Kubectl runs kubectl with input. On a busy machine, a connection may take longer than the 10 seconds that kubectl allows: then the
// command has not reached the API server, and is run again, twice at most.
func (t *Tools) Kubectl(ctx context.Context, input string, args ...string) Result {
	for attempt := 1; ; attempt++ {
		r := run(ctx, input, t.Capi, append([]string{"kubectl"}, args...)...)
		if attempt == 3 || !r.Failed || !strings.Contains(r.Err, "TLS handshake timeout") {
			return r
		}
	}
}

func run(ctx context.Context, input, program string, args ...string) Result {
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errOut
	cmd.Env = append(os.Environ(), "CLUSTERCTL_DISABLE_VERSIONCHECK=true", "KUBECONFIG=")
	err := cmd.Run()
	r := Result{Command: filepath.Base(program) + " " + strings.Join(args, " "), Out: out.String(), Err: errOut.String(), Failed: err != nil}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		r.Err += err.Error()
	}
	return r
}
