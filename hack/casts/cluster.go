package casts

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// lab is a management cluster in a directory, and the environment of commands that use it.
type lab struct {
	dir         string
	environment []string
	server      *exec.Cmd
}

// start starts capi from bin/ of a repository. The providers are those of out/repository.
func start(ctx context.Context, root, dir string) (*lab, error) {
	bin := filepath.Join(root, "bin")
	l := &lab{dir: dir, environment: []string{
		"HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "KUBECONFIG=" + filepath.Join(dir, "kubeconfig"), "TERM=xterm-256color",
		"PATH=" + dir + ":" + bin + ":" + os.Getenv("PATH"), "CLUSTERCTL_DISABLE_VERSIONCHECK=true", "PS1=$ ",
	}}
	config, err := os.ReadFile(filepath.Join(root, "out", "repository", "clusterctl.yaml"))
	if err != nil {
		return nil, fmt.Errorf("%w: make release writes it", err)
	}
	for name, content := range map[string]string{
		"cluster-api/clusterctl.yaml": string(config),
		"kubectl":                     "#!/bin/sh\nexec capi kubectl \"$@\"\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			return nil, err
		}
	}
	l.server = exec.CommandContext(ctx, filepath.Join(bin, "capi"),
		"serve", "--data-dir", filepath.Join(dir, "data"), "--secure-port", "0", "--kubeconfig", filepath.Join(dir, "kubeconfig"))
	out, err := l.server.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := l.server.Start(); err != nil {
		return nil, err
	}
	if !bufio.NewScanner(out).Scan() { // It prints a line when it is ready.
		return nil, fmt.Errorf("capi did not start: %w", l.server.Wait())
	}
	return l, nil
}

// stop stops the management cluster.
func (l *lab) stop() error {
	if err := l.server.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return l.server.Wait()
}

// command returns a command of the shell in the directory of the cluster.
func (l *lab) command(ctx context.Context, command string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir, cmd.Env = l.dir, l.environment
	return cmd
}
