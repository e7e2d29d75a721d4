package journey

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// Template has the files of a cluster template and of its ClusterClass.
type Template struct {
	Cluster, Class string
}

// ProjectTemplate returns the template that this project releases.
func (t *Tools) ProjectTemplate() Template {
	dir := filepath.Join(t.Root, "providers", "infrastructure-in-memory", "config", "templates")
	return Template{Cluster: filepath.Join(dir, "cluster-template.yaml"), Class: filepath.Join(dir, "clusterclass-in-memory.yaml")}
}

// OlderTemplate returns the same template in v1beta1, as users have written it before there was v1beta2.
func (t *Tools) OlderTemplate() Template {
	dir := filepath.Join(t.Root, "test", "journey", "testdata", "v1beta1")
	return Template{Cluster: filepath.Join(dir, "cluster-template.yaml"), Class: filepath.Join(dir, "clusterclass-in-memory.yaml")}
}

// ReferenceTemplate returns the template of Cluster API v1.7, which is not part of this repository and may not exist. Its
// machines start as slowly as those of a real cloud.
func (t *Tools) ReferenceTemplate() (template Template, exists bool) {
	dir := filepath.Join(t.Root, "..", "shared", "facts", "data", "templates-v1.7", "inmemory")
	template = Template{
		Cluster: filepath.Join(dir, "cluster-template-in-memory-development.yaml"),
		Class:   filepath.Join(dir, "clusterclass-in-memory-quick-start.yaml"),
	}
	_, err := os.Stat(template.Class)
	return template, err == nil
}

// Class applies the ClusterClass of a template, and returns its name.
func (w *World) Class(template Template) string {
	w.t.Helper()
	objects, err := readObjects(template.Class)
	if err != nil {
		w.t.Fatal(err)
	}
	name := ""
	for _, o := range objects {
		w.Applied(o)
		if o.GetKind() == "ClusterClass" {
			name = o.GetName()
		}
	}
	return name
}

// Generated returns the Cluster that clusterctl generates from a template.
func (w *World) Generated(template Template, name, version string, controlPlanes, workers int) *clusterv1.Cluster {
	w.t.Helper()
	r := w.Tools.Clusterctl(w.t.Context(), "", "generate", "cluster", name, "--kubeconfig", w.Kubeconfig,
		"--from", template.Cluster, "--target-namespace", w.Namespace, "--kubernetes-version", version,
		"--control-plane-machine-count", fmt.Sprint(controlPlanes), "--worker-machine-count", fmt.Sprint(workers))
	if r.Failed {
		w.t.Fatal(r)
	}
	cluster, err := w.readCluster([]byte(r.Out))
	if err != nil {
		w.t.Fatalf("parsing the Cluster that clusterctl generated: %v\n%s", err, r.Out)
	}
	return cluster
}

// readCluster reads a Cluster in v1beta1 or v1beta2.
func (w *World) readCluster(content []byte) (*clusterv1.Cluster, error) {
	cluster, newer, written := &clusterv1.Cluster{}, &clusterv1beta2.Cluster{}, metav1.TypeMeta{}
	if err := yaml.Unmarshal(content, &written); err != nil {
		return nil, err
	}
	if written.APIVersion == clusterv1.GroupVersion.String() {
		return cluster, yaml.UnmarshalStrict(content, cluster)
	}
	if err := yaml.UnmarshalStrict(content, newer); err != nil {
		return nil, err
	}
	return cluster, conversion.Shared().Convert(w.t.Context(), newer, cluster)
}

func readObjects(path string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a template: %w", err)
	}
	objects, err := parseObjects(string(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return objects, nil
}

func parseObjects(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
}

// applyText applies YAML documents.
func (w *World) applyText(text string) {
	w.t.Helper()
	objects, err := parseObjects(text)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range objects {
		w.Applied(o)
	}
}

// object returns an empty object for reading or deleting.
func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}
