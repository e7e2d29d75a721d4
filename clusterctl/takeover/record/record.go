// Package record writes the objects of a Cluster to files, as the API server returns them in each served version and without secrets: what
// tests of a takeover load as references (sdk/testenv/recorded).
//
//	record.go  reads the objects, and writes the files
//	strip.go   removes what must not leave the management cluster: a pure function
package record

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// page is how many objects a request lists.
	page = 500
	// groups is the end of the names of API groups that are recorded.
	groups = "cluster.x-k8s.io"
)

// Recording is the objects of a Cluster by file: "<group>.<version>" with the first part of the API group, and "secrets".
type Recording map[string][]*unstructured.Unstructured

// Objects returns how many objects of a Cluster are recorded, each in one or more versions.
func (r Recording) Objects() int {
	found := map[string]bool{}
	for _, objects := range r {
		for _, o := range objects {
			found[o.GroupVersionKind().GroupKind().String()+"/"+o.GetName()] = true
		}
	}
	return len(found)
}

// Read reads the objects of a Cluster, and those of its namespace that belong to no Cluster, such as classes and their templates, in every
// version that is served. It is an error if the Cluster does not exist.
func Read(ctx context.Context, c client.Reader, cluster client.ObjectKey) (Recording, error) {
	definitions := &unstructured.UnstructuredList{}
	definitions.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := c.List(ctx, definitions); err != nil {
		return nil, fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	r, exists := Recording{}, false
	for i := range definitions.Items {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definitions.Items[i].Object, crd); err != nil {
			return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", definitions.Items[i].GetName(), err)
		}
		if !strings.HasSuffix(crd.Spec.Group, groups) || crd.Spec.Scope != apiextensionsv1.NamespaceScoped {
			continue
		}
		for _, v := range crd.Spec.Versions {
			if !v.Served {
				continue
			}
			kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
			objects, err := list(ctx, c, kind, cluster)
			if err != nil {
				return nil, err
			}
			short, _, _ := strings.Cut(kind.Group, ".")
			r.add(short+"."+kind.Version, objects)
			exists = exists || kind.Kind == clusterv1.ClusterKind && len(objects) > 0
		}
	}
	if !exists {
		return nil, fmt.Errorf("Cluster %s does not exist", cluster)
	}
	secrets, err := list(ctx, c, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, cluster,
		client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name})
	if err != nil {
		return nil, err
	}
	r.add("secrets", secrets)
	return r, nil
}

func (r Recording) add(file string, objects []*unstructured.Unstructured) {
	if len(objects) > 0 {
		r[file] = append(r[file], objects...)
	}
}

// list returns the objects of a kind, without secrets: those of the Cluster, and those of its namespace that belong to no Cluster.
func list(
	ctx context.Context, c client.Reader, kind schema.GroupVersionKind, cluster client.ObjectKey, options ...client.ListOption,
) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for next := ""; ; {
		objects := &unstructured.UnstructuredList{}
		objects.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		all := append([]client.ListOption{client.InNamespace(cluster.Namespace), client.Limit(page), client.Continue(next)}, options...)
		if err := c.List(ctx, objects, all...); err != nil {
			return nil, fmt.Errorf("listing objects of kind %s in %s: %w", kind.Kind, kind.GroupVersion(), err)
		}
		for i := range objects.Items {
			o := &objects.Items[i]
			if kind.Kind == clusterv1.ClusterKind && o.GetName() != cluster.Name {
				continue
			}
			if owner, labeled := o.GetLabels()[clusterv1.ClusterNameLabel]; labeled && owner != cluster.Name {
				continue
			}
			o.SetGroupVersionKind(kind)
			Strip(o)
			found = append(found, o)
		}
		if next = objects.GetContinue(); next == "" {
			return found, nil
		}
	}
}

// Write writes the files of a state, as "<state>.<group>.<version>.json", into a directory that it creates if necessary.
func (r Recording) Write(directory, state string) ([]string, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, err
	}
	var files []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		content, err := json.MarshalIndent(r[name], "", " ")
		if err != nil {
			return nil, err
		}
		file := filepath.Join(directory, state+"."+name+".json")
		if err := os.WriteFile(file, append(content, '\n'), 0o600); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}
