package oci

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

// CheckDocker returns an error that says what to do if there is no engine.
func CheckDocker(ctx context.Context) error {
	if _, err := exec.LookPath("docker"); err != nil {
		return errors.New("docker is not in PATH: install Docker (on Debian, hack/docker.sh start does), or write a file with --output")
	}
	if _, err := runDocker(ctx, nil, "version", "--format", "{{.Server.Version}}"); err != nil {
		return fmt.Errorf("cannot reach Docker: start it (on Debian, hack/docker.sh start does), set DOCKER_HOST, "+
			"or write a file with --output: %w", err)
	}
	return nil
}

// IDInDocker returns the ID of an image, or an empty string if the engine does not have it.
func IDInDocker(ctx context.Context, image string) string {
	out, err := runDocker(ctx, nil, "image", "inspect", "--format", "{{.Id}}", image)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// LoadIntoDocker loads an image under a name, and returns its ID.
func LoadIntoDocker(ctx context.Context, image string, content v1.Image) (string, error) {
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(WriteArchive(writer, image, content)) }()
	if _, err := runDocker(ctx, reader, "load", "--quiet"); err != nil {
		return "", errors.Join(fmt.Errorf("cannot load %s into Docker: %w", image, err), reader.Close())
	}
	id := IDInDocker(ctx, image)
	if id == "" {
		return "", fmt.Errorf("Docker does not have %s after loading it", image)
	}
	return id, nil
}

// WriteArchive writes an image as an archive that docker load reads.
func WriteArchive(w io.Writer, image string, content v1.Image) error {
	tag, err := name.NewTag(image)
	if err != nil {
		return err
	}
	return tarball.Write(tag, content, w)
}

func runDocker(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
