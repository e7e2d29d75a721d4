package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json" // Numbers as clients have them.
	"sigs.k8s.io/yaml"
)

// state is a cluster in one state, as one version of Cluster API shows its objects.
type state struct {
	// release and name are such as v1.14.0 and 2-at-rest; version is v1beta1 or v1beta2.
	release, name, version string
	objects                []*unstructured.Unstructured
}

// recorded returns the states of a cluster, with the objects of the core and kubeadm providers.
func recorded(t *testing.T) []state {
	t.Helper()
	root := os.Getenv("CAPI_FACTS_DIR")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "facts")
	}
	paths, err := filepath.Glob(filepath.Join(root, "data", "recorded", "*", "*.v1beta*.json"))
	if err != nil || len(paths) == 0 {
		t.Skipf("the reference data is absent, so nothing was tested: set CAPI_FACTS_DIR to the directory with data/recorded (%v)", err)
	}
	var states []state
	for _, path := range paths {
		parts := strings.Split(filepath.Base(path), ".")
		s := state{release: filepath.Base(filepath.Dir(path)), name: parts[0], version: parts[2]}
		i := slices.IndexFunc(states, func(x state) bool { return x.release == s.release && x.name == s.name && x.version == s.version })
		if i < 0 {
			i = len(states)
			states = append(states, s)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var objects []map[string]any
		if err := json.Unmarshal(content, &objects); err != nil {
			t.Fatalf("parse %s: %v", path, err)
		}
		for _, o := range objects {
			states[i].objects = append(states[i].objects, &unstructured.Unstructured{Object: o})
		}
	}
	return states
}

// in returns the object of a kind; nil if there is none.
func (s state) in(kind string) *unstructured.Unstructured {
	for _, o := range s.objects {
		if o.GetKind() == kind {
			return o
		}
	}
	return nil
}

// file reads a file of the release.
func file(t *testing.T, name string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "files", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(content, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
