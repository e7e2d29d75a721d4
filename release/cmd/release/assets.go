package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// defaultsFile has the manifests of all components that are installed by default.
	defaultsFile = "cluster-api-components.yaml"
	// stateMetricsFile and olderStateMetricsFile are configurations of kube-state-metrics, in v1beta2 and v1beta1.
	stateMetricsFile      = "crd-metrics-config.yaml"
	olderStateMetricsFile = "crd-metrics-config-v1beta1.yaml"
	// alertsFile and dashboardFile are for Prometheus and Grafana.
	alertsFile    = "alerts.yaml"
	dashboardFile = "dashboard.json"
	// argoFile and fluxFile tell Argo CD and Flux when objects are healthy.
	argoFile = "argocd-health.yaml"
	fluxFile = "flux-health.yaml"
	// hooksFile and olderHooksFile are the OpenAPI documents of the runtime hooks, with payloads in v1beta2 and v1beta1.
	hooksFile      = "runtime-sdk-openapi.yaml"
	olderHooksFile = "runtime-sdk-openapi-v1beta1.yaml"
)

// folder has the files of a release. Components share it, so file names must be unique.
type folder struct {
	path string
	// from is what each file belongs to, by name.
	from map[string]string
}

func newFolder(path string) (*folder, error) {
	return &folder{path: path, from: map[string]string{}}, os.MkdirAll(path, 0o755)
}

// write writes a file. Its mode is 0600, or 0755 for programs.
func (f *folder) write(name, from string, mode fs.FileMode, content []byte) error {
	if other, taken := f.from[name]; taken && other != from {
		return fmt.Errorf("file %s is in %s and in %s: rename one", name, other, from)
	}
	f.from[name] = from
	return os.WriteFile(filepath.Join(f.path, name), content, mode)
}

// copy copies a file of the checkout.
func (f *folder) copy(file, from string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return f.write(filepath.Base(file), from, 0o600, content)
}

// manifests writes the manifests and templates of all components.
func (r release) manifests(f *folder, components []component) error {
	var defaults []*unstructured.Unstructured
	for _, c := range components {
		objects, err := r.objects(c)
		if err != nil {
			return err
		}
		if c.isDefault() {
			defaults = append(defaults, objects...)
		}
		if err := f.write(c.File(), c.Label, 0o600, join(objects)); err != nil {
			return err
		}
		packaged, err := r.chart(c, components)
		if err != nil {
			return fmt.Errorf("chart of %s: %w", c.Label, err)
		}
		if packaged != nil {
			if err := f.write(packaged.File, c.Label, 0o600, packaged.Content); err != nil {
				return err
			}
		}
		templates, err := filepath.Glob(filepath.Join(c.folder, "templates", "*.yaml"))
		if err != nil {
			return err
		}
		for _, file := range templates {
			if err := f.copy(file, c.Label); err != nil {
				return err
			}
		}
	}
	const all = "all components"
	if err := f.write(defaultsFile, all, 0o600, join(defaults)); err != nil {
		return err
	}
	for _, file := range []string{
		"metadata.yaml", stateMetricsFile, olderStateMetricsFile, alertsFile, dashboardFile, argoFile, fluxFile, hooksFile, olderHooksFile,
	} {
		if err := f.copy(filepath.Join(r.files, file), all); err != nil {
			return err
		}
	}
	return nil
}
