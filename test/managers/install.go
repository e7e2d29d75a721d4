package managers

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Install applies the definitions and webhook configurations of a manager's component. The webhooks call the manager
// at a port of loopback.
func (s *Server) Install(ctx context.Context, m *Manager, port int) error {
	for _, kind := range []string{"crd", "webhook"} {
		files, err := filepath.Glob(filepath.Join(s.Root, "config", m.Component, kind, "*.yaml"))
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
				if err := s.Client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
					return fmt.Errorf("%s: %w", file, err)
				}
			}
		}
	}
	return nil
}

func callLoopback(o *unstructured.Unstructured, port int, ca []byte) {
	webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	for _, w := range webhooks {
		webhook, ok := w.(map[string]any)
		if !ok {
			continue
		}
		path, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		webhook["clientConfig"] = map[string]any{
			"url":      "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) + path,
			"caBundle": base64.StdEncoding.EncodeToString(ca),
		}
	}
	_ = unstructured.SetNestedSlice(o.Object, webhooks, "webhooks") // It was a list before, or nothing.
}

// ReadObjects reads a file of YAML documents.
func ReadObjects(file string) ([]*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, document := range bytes.Split(raw, []byte("\n---")) {
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
