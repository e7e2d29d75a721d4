package conformance

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/manifest"
)

// bundle is the content of a components file.
type bundle struct {
	file      string
	documents []*document
	namespace string
}

// components checks the components file.
func (c *checker) components(names []string) error {
	file := c.componentsFile(names)
	if file == "" {
		return nil
	}
	before := len(c.findings)
	list, _, err := c.documents(file, chapterComponents)
	switch {
	case err != nil:
		return err
	case len(list) == 0 && len(c.findings) > before:
		return nil
	case len(list) == 0:
		c.add(Error, file, 0, chapterComponents, "there is no object")
		return nil
	}
	b := &bundle{file: file, documents: list}
	c.namespace(b)
	c.scopes(b)
	c.labels(b)
	c.workloads(b)
	c.definitions(b)
	c.webhooks(b)
	return nil
}

// componentsFile returns the name of the components file, "" if there is none.
func (c *checker) componentsFile(names []string) string {
	word := packages.Word(c.Provider.Type)
	want := word + "-components.yaml"
	if slices.Contains(names, want) {
		return want
	}
	for _, name := range names {
		if strings.HasPrefix(name, word+"-components") && strings.HasSuffix(name, ".yaml") {
			c.add(Warning, name, 0, chapterComponents, "the components file should be named %s", want)
			return name
		}
	}
	c.add(Error, "", 0, chapterRepository, "%s is missing: it holds all objects of the provider", want)
	return ""
}

// namespace finds the target namespace.
func (c *checker) namespace(b *bundle) {
	for _, d := range b.documents {
		if d.GetKind() != "Namespace" {
			continue
		}
		if b.namespace != "" {
			c.add(Error, b.file, d.line(), chapterComponents, "Namespace %s is the second one: only one is allowed, the target namespace",
				d.GetName())
			continue
		}
		b.namespace = d.GetName()
	}
	if b.namespace == "" {
		c.add(Warning, b.file, 0, chapterComponents, "there is no Namespace: users have to set one with --target-namespace")
	}
}

// scopes checks that namespaced objects are in the target namespace.
func (c *checker) scopes(b *bundle) {
	var objects []unstructured.Unstructured
	for _, d := range b.documents {
		objects = append(objects, d.Unstructured)
	}
	scope := manifest.ScopeOf(objects)
	for _, d := range b.documents {
		if scope.Namespaced(&d.Unstructured) && b.namespace != "" && d.GetNamespace() != b.namespace {
			c.add(Error, b.file, d.line("metadata", "namespace"), chapterComponents,
				"%s has the namespace %q: all objects must belong to the target namespace %s", describe(d), d.GetNamespace(), b.namespace)
		}
	}
}

// labels checks the provider's label.
func (c *checker) labels(b *bundle) {
	want := c.Provider.ManifestLabel()
	for _, d := range b.documents {
		value, found := d.GetLabels()[clusterv1.ProviderNameLabel]
		line := d.line("metadata", "labels", clusterv1.ProviderNameLabel)
		switch {
		case !found:
			c.add(Warning, b.file, line, chapterComponents, "%s should have the label %s: %s", describe(d), clusterv1.ProviderNameLabel, want)
		case value != want:
			c.add(Error, b.file, line, chapterComponents, "%s has the label %s: %s: the value must be %s",
				describe(d), clusterv1.ProviderNameLabel, value, want)
		}
	}
}

// workloads checks the Deployments, and the images of all containers.
func (c *checker) workloads(b *bundle) {
	var deployment *document
	managers := 0
	for _, d := range b.documents {
		if d.GetKind() != "Deployment" && d.GetKind() != "DaemonSet" {
			continue
		}
		for _, field := range []string{"containers", "initContainers"} {
			path := []string{"spec", "template", "spec", field}
			for i, container := range d.items(path...) {
				if d.GetKind() == "Deployment" && field == "containers" && container["name"] == packages.ManagerContainer {
					managers++
					c.watched(d, i, container)
				}
				c.image(d, field, i, container)
			}
		}
		if d.GetKind() == "Deployment" {
			deployment = d
		}
	}
	switch {
	case deployment == nil:
		c.add(Warning, b.file, 0, chapterComponents, "there is no Deployment: each provider is expected to deploy its controllers with one")
	case managers == 0:
		c.add(Error, b.file, deployment.line("spec", "template", "spec", "containers"), chapterComponents,
			"no container is named %s: the one with the controllers must be, otherwise --wait-providers does not wait for it",
			packages.ManagerContainer)
	}
}

// watched checks that a manager does not reconcile the objects of only one namespace.
func (c *checker) watched(d *document, index int, container map[string]any) {
	args, _, _ := unstructured.NestedStringSlice(container, "args")
	for i, arg := range args {
		name, value, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !given && i+1 < len(args) {
			value = args[i+1]
		}
		if name == "namespace" && strings.HasPrefix(arg, "-") && value != "" {
			c.add(Warning, d.file, d.line("spec", "template", "spec", "containers", index, "args"), chapterComponents,
				"container %v of %s has the argument --namespace=%s: a provider should reconcile the objects of all namespaces",
				container["name"], describe(d), value)
		}
	}
}

// image checks the image of a container.
func (c *checker) image(d *document, field string, index int, container map[string]any) {
	image, _ := container["image"].(string)
	line := d.line("spec", "template", "spec", field, index, "image")
	_, tag, tagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	switch {
	case image == "":
		c.add(Error, d.file, line, chapterComponents, "container %v of %s has no image", container["name"], describe(d))
	case strings.Contains(image, "@"):
	case !tagged:
		c.add(Warning, d.file, line, chapterComponents,
			"image %s has neither tag nor digest: a release should always install the same image", image)
	case tag == "latest":
		c.add(Warning, d.file, line, chapterComponents, "image %s has the tag latest: a release should always install the same image", image)
	}
}

// webhooks checks that configurations of webhooks reach a Service of the provider, and get a CA.
func (c *checker) webhooks(b *bundle) {
	for _, d := range b.documents {
		switch d.GetKind() {
		case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
			for i, webhook := range d.items("webhooks") {
				c.webhook(b, d, webhook, "webhooks", i, "clientConfig")
			}
		case manifest.KindCRD:
			if conversion, found, _ := unstructured.NestedMap(d.Object, "spec", "conversion", "webhook"); found {
				c.webhook(b, d, conversion, "spec", "conversion", "webhook", "clientConfig")
			}
		}
	}
}

func (c *checker) webhook(b *bundle, d *document, webhook map[string]any, path ...any) {
	line := d.line(path...)
	service, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "name")
	if service == "" {
		c.add(Error, b.file, line, chapterComponents,
			"a webhook of %s has no clientConfig.service: clusterctl can only move Services to another namespace", describe(d))
	} else if !b.has("Service", service) {
		c.add(Error, b.file, line, chapterComponents, "a webhook of %s calls Service %s, which is not in the file", describe(d), service)
	}
	bundled, _, _ := unstructured.NestedString(webhook, "clientConfig", "caBundle")
	certificate, injected := d.GetAnnotations()["cert-manager.io/inject-ca-from"]
	_, name, _ := strings.Cut(certificate, "/")
	switch {
	case !injected && bundled == "" && !c.ownCertificates(b):
		c.add(Error, b.file, line, chapterComponents,
			"a webhook of %s has no CA: add the annotation cert-manager.io/inject-ca-from: {namespace}/{certificate}", describe(d))
	case injected && !b.has("Certificate", name):
		c.add(Error, b.file, d.line("metadata", "annotations", "cert-manager.io/inject-ca-from"), chapterComponents,
			"%s gets its CA from Certificate %s, which is not in the file", describe(d), name)
	}
}

// ownCertificates reports whether the provider can write CAs into its webhook configurations itself.
func (c *checker) ownCertificates(b *bundle) bool {
	for _, d := range b.documents {
		if d.GetKind() != "ClusterRole" {
			continue
		}
		for _, rule := range d.items("rules") {
			groups, verbs := values(rule, "apiGroups"), values(rule, "verbs")
			if slices.Contains(groups, "admissionregistration.k8s.io") && (slices.Contains(verbs, "patch") || slices.Contains(verbs, "update")) {
				return true
			}
		}
	}
	return false
}

func (b *bundle) has(kind, name string) bool {
	return slices.ContainsFunc(b.documents, func(d *document) bool { return d.GetKind() == kind && d.GetName() == name })
}

func values(object map[string]any, key string) []string {
	list, _, _ := unstructured.NestedStringSlice(object, key)
	return list
}

func describe(d *document) string { return manifest.Describe(&d.Unstructured) }

// skipsNameCheck reports whether a definition declares that its name is safe.
func skipsNameCheck(d *document) bool {
	_, skip := d.GetAnnotations()[clusterctlv1.SkipCRDNamePreflightCheckAnnotation]
	return skip
}
