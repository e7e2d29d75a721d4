// Package docker loads images into a local container engine, through its command line.
package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Check returns an error that says what to do if there is no engine.
func Check(ctx context.Context) error {
	if _, err := exec.LookPath("docker"); err != nil {
		return errors.New("docker is not in PATH: install Docker (on Debian, hack/docker.sh start does), or write a file with --output")
	}
	if _, err := run(ctx, nil, "version", "--format", "{{.Server.Version}}"); err != nil {
		return fmt.Errorf("cannot reach Docker: start it (on Debian, hack/docker.sh start does), set DOCKER_HOST, "+
			"or write a file with --output: %w", err)
	}
	return nil
}

// ID returns the ID of an image, or an empty string if the engine does not have it.
func ID(ctx context.Context, image string) string {
	out, err := run(ctx, nil, "image", "inspect", "--format", "{{.Id}}", image)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// Load loads an image under a name, and returns its ID.
func Load(ctx context.Context, image string, content v1.Image) (string, error) {
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(Write(writer, image, content)) }()
	if _, err := run(ctx, reader, "load", "--quiet"); err != nil {
		return "", errors.Join(fmt.Errorf("cannot load %s into Docker: %w", image, err), reader.Close())
	}
	id := ID(ctx, image)
	if id == "" {
		return "", fmt.Errorf("Docker does not have %s after loading it", image)
	}
	return id, nil
}

// Write writes an image as an archive that docker load reads.
func Write(w io.Writer, image string, content v1.Image) error {
	tag, err := name.NewTag(image)
	if err != nil {
		return err
	}
	return tarball.Write(tag, content, w)
}

func run(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
