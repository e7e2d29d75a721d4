package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// setResources is the number of ConfigMaps of the ClusterResourceSet, and setObjects the number of objects in each.
	setResources, setObjects = 5, 10
	setName                  = "bench"
)

// resourceSets creates clusters without workers, and then a ClusterResourceSet that selects all of them, and prints what it costs to apply
// it, and what a change of one of its ConfigMaps costs.
func (w *world) resourceSets(ctx context.Context, out io.Writer, clusters int) error {
	for done := 0; done < clusters; done += hundred {
		s := scenario{Clusters: min(hundred, clusters-done), ControlPlanes: 1}
		if _, err := w.measure(ctx, s, fmt.Sprintf("r%d-", done/hundred)); err != nil {
			return err
		}
	}
	if err := pause(ctx, calm); err != nil {
		return err
	}
	created, err := w.cost(ctx, fmt.Sprintf("%d resources applied to %d", setResources, clusters), clusters, w.createSet)
	if err != nil {
		return err
	}
	changed, err := w.cost(ctx, fmt.Sprintf("one of them changed, in %d", clusters), clusters, func(ctx context.Context) error {
		return w.Client.Patch(ctx, setConfigMap(0, 2), client.Merge)
	})
	printTable(out, []row{created, changed})
	for _, r := range []row{created, changed} {
		fmt.Fprintln(out, r.Name+":")
		printDetail(out, r, 10)
	}
	return err
}

// cost measures a change of the ClusterResourceSet, until all bindings record that the first ConfigMap was applied anew.
func (w *world) cost(ctx context.Context, name string, clusters int, change func(context.Context) error) (row, error) {
	before := map[string]string{}
	for _, b := range w.bindings.named("") {
		before[b.GetName()] = firstHash(b)
	}
	m, err := w.meter(ctx)
	if err != nil {
		return row{}, err
	}
	begun := time.Now()
	if err := change(ctx); err != nil {
		return row{}, err
	}
	err = w.await(ctx, func() (string, bool) {
		applied := 0
		for _, b := range w.bindings.named("") {
			if complete(b) && firstHash(b) != before[b.GetName()] {
				applied++
			}
		}
		return fmt.Sprintf("applied to %d of %d Clusters", applied, clusters), applied == clusters
	})
	if err != nil {
		return row{}, err
	}
	r, err := m.row(ctx, scenario{Name: name, Clusters: clusters}, time.Since(begun).Seconds())
	r.Writes += float64(clusters) // A row subtracts the creation of its clusters. The few requests of this program count.
	return r, err
}

// createSet creates the ClusterResourceSet and its ConfigMaps.
func (w *world) createSet(ctx context.Context) error {
	var refs []any
	for i := range setResources {
		config := setConfigMap(i, 1)
		if err := w.Client.Create(ctx, config); err != nil {
			return err
		}
		refs = append(refs, map[string]any{"kind": "ConfigMap", "name": config.GetName()})
	}
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "addons.cluster.x-k8s.io/v1beta1", "kind": "ClusterResourceSet",
		"metadata": map[string]any{"name": setName, "namespace": "default"},
		"spec": map[string]any{
			"strategy": "Reconcile", "resources": refs,
			"clusterSelector": map[string]any{"matchExpressions": []any{map[string]any{"key": "none", "operator": "DoesNotExist"}}},
		},
	}}
	return w.Client.Create(ctx, set)
}

// setConfigMap returns the i-th ConfigMap, whose objects have a value in them.
func setConfigMap(i, value int) *unstructured.Unstructured {
	var documents []string
	for n := range setObjects {
		documents = append(documents,
			fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bench-%d-%d}\ndata: {value: \"%d\"}\n", i, n, value))
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("%s-%d", setName, i), "namespace": "default"},
		"data": map[string]any{"objects.yaml": strings.Join(documents, "---\n")},
	}}
}

// complete reports whether a binding records that everything is applied.
func complete(b *unstructured.Unstructured) bool {
	all := records(b)
	for _, r := range all {
		if r["applied"] != true {
			return false
		}
	}
	return len(all) == setResources
}

// firstHash returns the hash of the first ConfigMap that a binding records.
func firstHash(b *unstructured.Unstructured) string {
	for _, r := range records(b) {
		if r["name"] == setName+"-0" {
			hash, _ := r["hash"].(string)
			return hash
		}
	}
	return ""
}

func records(b *unstructured.Unstructured) []map[string]any {
	var all []map[string]any
	entries, _, _ := unstructured.NestedSlice(b.Object, "spec", "bindings")
	for _, item := range entries {
		entry, _ := item.(map[string]any)
		resources, _ := entry["resources"].([]any)
		for _, item := range resources {
			if r, ok := item.(map[string]any); ok {
				all = append(all, r)
			}
		}
	}
	return all
}
