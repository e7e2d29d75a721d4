package managers

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
)

// Install creates the CRDs and webhook configurations of a manager's component. The webhooks call the manager at a port on
// loopback.
func (s *Server) Install(ctx context.Context, m *Manager, port int) error {
	for _, kind := range []string{"crd", "webhook"} {
		files, err := filepath.Glob(filepath.Join(s.Root, "providers", m.Component, "config", kind, "*.yaml"))
		if err != nil {
			return err
		}
		for _, file := range files {
			objects, err := ReadObjects(file)
			if err != nil {
				return err
			}
			for _, o := range objects {
				if kind == "webhook" {
					o.SetName(m.Component + "-" + o.GetName())
					callLoopback(o, port, m.trusted)
				}
				if kind == "crd" {
					addLabel(o, clusterctlv1.ClusterctlLabel)
					convertByLoopback(o, port, m.trusted)
					store(o, s.Stored)
				}
				if err := s.Client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
					return fmt.Errorf("%s: %w", file, err)
				}
			}
		}
	}
	return nil
}

// AwaitDefinitions returns when discovery lists the kinds of all installed CRDs.
func (s *Server) AwaitDefinitions(ctx context.Context) error {
	d, err := discovery.NewDiscoveryClientForConfig(s.Config)
	if err != nil {
		return err
	}
	definitions := &unstructured.UnstructuredList{}
	definitions.SetAPIVersion("apiextensions.k8s.io/v1")
	definitions.SetKind("CustomResourceDefinitionList")
	if err := s.Client.List(ctx, definitions); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startTimeout, true, func(context.Context) (bool, error) {
		lists, err := d.ServerPreferredResources()
		if err != nil {
			return false, nil
		}
		served := map[string]bool{}
		for _, list := range lists {
			group, _, _ := strings.Cut(list.GroupVersion, "/")
			for _, r := range list.APIResources {
				served[r.Name+"."+group] = true
			}
		}
		return !slices.ContainsFunc(definitions.Items, func(o unstructured.Unstructured) bool { return !served[o.GetName()] }), nil
	})
}

// addLabel adds a label without value, as clusterctl init does.
func addLabel(o *unstructured.Unstructured, name string) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[name] = ""
	o.SetLabels(labels)
}

// convertByLoopback makes the API server convert by a manager, if the definition has several versions that differ.
func convertByLoopback(crd *unstructured.Unstructured, port int, ca []byte) {
	path, converts, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "webhook", "clientConfig", "service", "path")
	if converts { // It cannot fail: its parents exist.
		_ = unstructured.SetNestedMap(crd.Object, loopback(port, path, ca), "spec", "conversion", "webhook", "clientConfig")
	}
}

// Serves makes webhooks of a webhook configuration, and the conversion webhook of a CustomResourceDefinition, call the manager, and API
// servers trust its certificate.
func (m *Manager) Serves(o *unstructured.Unstructured) {
	switch o.GetKind() {
	case "CustomResourceDefinition":
		convertByLoopback(o, m.WebhookPort, m.trusted)
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		callLoopback(o, m.WebhookPort, m.trusted)
	}
}

// store makes the API server store a kind in a version, if the definition has it.
func store(crd *unstructured.Unstructured, version string) {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	name := func(v any) any { return v.(map[string]any)["name"] }
	if !slices.ContainsFunc(versions, func(v any) bool { return name(v) == version }) {
		return
	}
	for _, v := range versions {
		v.(map[string]any)["storage"] = name(v) == version
	}
	_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions") // Its parents exist.
}

// loopback returns the clientConfig of a webhook on a port on loopback.
func loopback(port int, path string, ca []byte) map[string]any {
	return map[string]any{
		"url":      "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) + path,
		"caBundle": base64.StdEncoding.EncodeToString(ca),
	}
}

func callLoopback(o *unstructured.Unstructured, port int, ca []byte) {
	webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	for _, w := range webhooks {
		webhook, ok := w.(map[string]any)
		if !ok {
			continue
		}
		path, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		webhook["clientConfig"] = loopback(port, path, ca)
	}
	_ = unstructured.SetNestedSlice(o.Object, webhooks, "webhooks") // It cannot fail: webhooks is a list or absent.
}

// ReadObjects parses a file of YAML documents.
func ReadObjects(file string) ([]*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for document := range bytes.SplitSeq(raw, []byte("\n---")) {
		text, err := yaml.YAMLToJSON(bytes.TrimPrefix(document, []byte("---")))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if string(text) == "null" {
			continue
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(text); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, o)
	}
	return out, nil
}
