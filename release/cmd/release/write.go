package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	substitution "sigs.k8s.io/cluster-api/packages/template"
	"sigs.k8s.io/cluster-api/release/image"
	"sigs.k8s.io/cluster-api/release/program"
)

const (
	// coreLabel is the label of the core provider.
	coreLabel = "cluster-api"
	// versionLabel is, on the operator's Deployment, its version.
	versionLabel = "app.kubernetes.io/version"
)

// release writes the repository.
type release struct {
	files, version, registry, releases, out string
	// imageList is the path of images, which have digests. Empty: manifests have tags only.
	imageList string
	images    image.List
	// platforms of the programs.
	platforms []program.Platform
}

// image returns the name of a component's image, with its digest if it is known. The tag is for users, and for overrides of
// clusterctl; container runtimes use the digest.
func (r release) image(c component) (string, error) {
	name := r.registry + "/" + c.Image + ":" + r.version
	if r.imageList == "" {
		return name, nil
	}
	built, ok := r.images.Images[c.Image]
	if !ok || r.images.Registry != r.registry || r.images.Version != r.version {
		return "", fmt.Errorf("%s does not have the image %s: build it with the same version and registry", r.imageList, name)
	}
	return name + "@" + built.Digest, nil
}

// write writes a component, one of all components, into the repository.
func (r release) write(c component, components []component) error {
	objects, err := r.objects(c)
	if err != nil {
		return err
	}
	if !c.isProvider() {
		// The operator has no folder of its own: its manifests and its chart are part of the core provider's release.
		folder := filepath.Join(r.out, coreLabel, r.version)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, c.File()), join(objects), 0o600); err != nil {
			return err
		}
		packaged, err := r.chart(c, components)
		if err != nil || packaged == nil {
			return err
		}
		return os.WriteFile(filepath.Join(folder, packaged.File), packaged.Content, 0o600)
	}
	folder := filepath.Join(r.out, c.Label, r.version)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, c.File()), join(objects), 0o600); err != nil {
		return err
	}
	return r.copyFiles(c, folder)
}

// copyFiles copies metadata.yaml and the component's templates, if any.
func (r release) copyFiles(c component, folder string) error {
	files := []string{filepath.Join(r.files, "metadata.yaml")}
	templates, err := filepath.Glob(filepath.Join(c.folder, "templates", "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range append(files, templates...) {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(file)), raw, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// objects returns all manifests of a component, in install order.
func (r release) objects(c component) ([]*unstructured.Unstructured, error) {
	objects, err := r.manager(c)
	if err != nil {
		return nil, err
	}
	for _, kind := range []string{"crd", "rbac", "webhook"} {
		files, err := filepath.Glob(filepath.Join(c.folder, kind, "*.yaml"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			more, err := readObjects(file)
			if err != nil {
				return nil, err
			}
			for _, o := range more {
				place(o, c)
			}
			objects = append(objects, more...)
		}
	}
	for _, o := range objects {
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, c.labels())
		if o.GetKind() == "Deployment" && !c.isProvider() {
			// Providers have their versions in the inventory.
			labels[versionLabel] = r.version
		}
		o.SetLabels(labels)
	}
	return objects, nil
}

// manager renders the common objects of a manager.
func (r release) manager(c component) ([]*unstructured.Unstructured, error) {
	t, err := template.ParseFiles(filepath.Join(r.files, "manager.yaml.tmpl"))
	if err != nil {
		return nil, err
	}
	name, err := r.image(c)
	if err != nil {
		return nil, err
	}
	c.Image = name
	var rendered bytes.Buffer
	if err := t.Execute(&rendered, c); err != nil {
		return nil, err
	}
	if c.isProvider() {
		return split(rendered.Bytes())
	}
	parsed, err := substitution.Parse(rendered.Bytes())
	if err != nil {
		return nil, err
	}
	plain, err := parsed.Execute(func(string) (string, bool) { return "", false })
	if err != nil {
		return nil, err
	}
	return split(plain)
}

// place sets the component's prefix and namespace on generated objects. Generated webhook configurations and conversions refer to
// a Service "webhook-service" in namespace "system".
func place(o *unstructured.Unstructured, c component) {
	switch o.GetKind() {
	case "ClusterRole", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		o.SetName(c.Prefix + o.GetName())
	}
	webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	for _, w := range webhooks {
		if webhook, ok := w.(map[string]any); ok {
			placeService(webhook, c)
		}
	}
	if len(webhooks) > 0 {
		_ = unstructured.SetNestedSlice(o.Object, webhooks, "webhooks")
	}
	conversion, ok, _ := unstructured.NestedMap(o.Object, "spec", "conversion", "webhook")
	if ok && o.GetKind() == "CustomResourceDefinition" {
		placeService(conversion, c)
		_ = unstructured.SetNestedMap(o.Object, conversion, "spec", "conversion", "webhook")
	}
}

// placeService sets the Service of a webhook.
func placeService(webhook map[string]any, c component) {
	_ = unstructured.SetNestedField(webhook, c.Prefix+"webhook-service", "clientConfig", "service", "name")
	_ = unstructured.SetNestedField(webhook, c.Namespace, "clientConfig", "service", "namespace")
}

func readObjects(file string) ([]*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	objects, err := split(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return objects, nil
}

func split(raw []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for document := range strings.SplitSeq("\n"+string(raw), "\n---") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
	return out, nil
}

func join(objects []*unstructured.Unstructured) []byte {
	var out bytes.Buffer
	for i, o := range objects {
		if i > 0 {
			out.WriteString("---\n")
		}
		raw, err := yaml.Marshal(o.Object)
		if err != nil {
			panic(fmt.Sprintf("an object read from YAML does not marshal: %v", err))
		}
		out.Write(raw)
	}
	return out.Bytes()
}

// clusterctlConfig writes a configuration with every provider of this repository.
func (r release) clusterctlConfig(components []component) error {
	base, err := filepath.Abs(r.out)
	if err != nil {
		return err
	}
	type provider struct {
		Name string `json:"name"`
		Type string `json:"type"`
		URL  string `json:"url"`
	}
	config := struct {
		Providers []provider `json:"providers"`
		// Enables ClusterClass, which the templates of the repository use.
		Topology string `json:"CLUSTER_TOPOLOGY"`
		// Enables Ignition, which the book uses.
		Ignition string `json:"EXP_KUBEADM_BOOTSTRAP_FORMAT_IGNITION"`
	}{Topology: "true", Ignition: "true"}
	for _, c := range components {
		if !c.isProvider() {
			continue
		}
		config.Providers = append(config.Providers, provider{
			Name: c.Name(), Type: c.ProviderType(), URL: filepath.Join(base, c.Label, "latest", c.File()),
		})
	}
	raw, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(base, "clusterctl.yaml"), raw, 0o600)
}

// filesOf returns the folder of the files that releases contain as they are, in the repository at root.
func filesOf(root string) string {
	return filepath.Join(root, "release", "files")
}
