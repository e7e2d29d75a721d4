package managers

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// releasedVersion is a version of a release series that release/files/metadata.yaml has.
const releasedVersion = "v2.0.0"

// Released returns the manifests of a program's component, from a release of this repository, with the defaults of their
// variables.
func (s *Server) Released(ctx context.Context, p Program) ([]*unstructured.Unstructured, error) {
	folder, err := s.Repository(ctx)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(folder, p.label(), releasedVersion, p.manifests()))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("the release has no manifests of %s", p.Component)
	}
	return ReadObjects(files[0])
}

// Repository returns the folder of a local provider repository with a release of this repository.
func (s *Server) Repository(ctx context.Context) (string, error) {
	if s.released == "" {
		out := filepath.Join(s.Dir, "repository")
		if err := Release(ctx, s.Root, out); err != nil {
			return "", err
		}
		s.released = out
	}
	return s.released, nil
}

// Release writes a release of the repository at root into a folder: a local provider repository, and a clusterctl.yaml for it.
func Release(ctx context.Context, root, folder string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "run", "./cmd/release", "--root", root, "--version", releasedVersion, "--out", folder)
	cmd.Dir = filepath.Join(root, "release")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("writing the release manifests: %w: %s", err, output)
	}
	return nil
}

// label returns the provider label of the program's component, which is the name of its folder in a release.
func (p Program) label() string {
	switch p.Component {
	case "core", operator:
		return "cluster-api"
	case "fleet":
		return "addon-fleet"
	}
	return p.Component
}

// manifests returns the pattern of the file with the manifests.
func (p Program) manifests() string {
	if p.Component == "core" || p.Component == operator {
		return p.Component + "-components.yaml"
	}
	return "*-components*.yaml"
}
