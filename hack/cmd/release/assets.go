package main

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// defaultsFile has the manifests of all components that are installed by default.
	defaultsFile = "cluster-api-components.yaml"
	// stateMetricsFile is the configuration of kube-state-metrics.
	stateMetricsFile = "crd-metrics-config.yaml"
)

// assets writes the files of a release into one folder. Components share it, so file names must be unique.
func (r release) assets(folder string, components []component) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	written := map[string]string{}
	write := func(name, from string, content []byte) error {
		if other, taken := written[name]; taken && other != from {
			return fmt.Errorf("file %s is in %s and in %s: rename one", name, other, from)
		}
		written[name] = from
		return os.WriteFile(filepath.Join(folder, name), content, 0o600)
	}
	var defaults []*unstructured.Unstructured
	for _, c := range components {
		objects, err := r.objects(c)
		if err != nil {
			return err
		}
		if c.isDefault() {
			defaults = append(defaults, objects...)
		}
		if err := write(c.File(), c.Label, join(objects)); err != nil {
			return err
		}
		templates, err := filepath.Glob(filepath.Join(c.folder, "templates", "*.yaml"))
		if err != nil {
			return err
		}
		for _, file := range templates {
			if err := copyTo(write, file, c.Label); err != nil {
				return err
			}
		}
	}
	if err := write(defaultsFile, "all components", join(defaults)); err != nil {
		return err
	}
	for _, file := range []string{"metadata.yaml", filepath.Join("metrics", stateMetricsFile)} {
		if err := copyTo(write, filepath.Join(r.config, file), "all components"); err != nil {
			return err
		}
	}
	return nil
}

func copyTo(write func(name, from string, content []byte) error, file, from string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return write(filepath.Base(file), from, content)
}
