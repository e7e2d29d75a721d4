// Package discovery reads the objects of a management cluster that a move considers.
//
// Which of them are moved is decided by package graph.
package discovery

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
	"sigs.k8s.io/cluster-api/clusterctl/move/side"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

const (
	// parallel is how many kinds are listed concurrently.
	parallel = 8
	// page is the number of objects per response.
	page = 500
)

// Kinds returns the kinds whose objects may be moved: those of CRDs that clusterctl installed, Secrets and ConfigMaps. The kinds of Cluster
// API are in v1beta1, which releases before v1.11 serve, too, and which later ones convert without loss; others in the version that is
// stored.
func Kinds(ctx context.Context, s *side.Side) ([]graph.Kind, error) {
	crds := &unstructured.UnstructuredList{}
	crds.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	err := s.Do(ctx, "list CustomResourceDefinitions", func(ctx context.Context) error {
		return s.List(ctx, crds, client.HasLabels{clusterctlv1.ClusterctlLabel})
	})
	if err != nil {
		return nil, err
	}
	kinds := []graph.Kind{
		{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespaced: true},
		{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Namespaced: true},
	}
	for i := range crds.Items {
		if k, ok := kindOf(&crds.Items[i]); ok {
			kinds = append(kinds, k)
		}
	}
	return kinds, nil
}

// kindOf returns the kind that a CRD defines; ok is false for the inventory of providers, which belongs to its cluster.
func kindOf(crd *unstructured.Unstructured) (k graph.Kind, ok bool) {
	if crd.GetName() == inventory.CRDName {
		return k, false
	}
	k.Group, _, _ = unstructured.NestedString(crd.Object, "spec", "group")
	k.Kind, _, _ = unstructured.NestedString(crd.Object, "spec", "names", "kind")
	scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
	k.Namespaced = scope == "Namespaced"
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, item := range versions {
		v, _ := item.(map[string]any)
		name, _ := v["name"].(string)
		ours := name == clusterv1beta1.GroupVersion.Version && v["served"] == true && conversion.Shared().Versions(k.GroupKind()) != nil
		if ours || v["storage"] == true && k.Version == "" {
			k.Version = name
		}
	}
	_, k.Move = crd.GetLabels()[clusterctlv1.ClusterctlMoveLabel]
	_, k.Hierarchy = crd.GetLabels()[clusterctlv1.ClusterctlMoveHierarchyLabel]
	return k, k.Version != ""
}

// Reader lists the objects of kinds.
type Reader struct {
	Side *side.Side
	// Namespace is the namespace whose objects are listed; objects of cluster-scoped kinds are all listed.
	Namespace string
	// SecretNamespaces are further namespaces whose Secrets are listed: those of infrastructure providers.
	SecretNamespaces []string
	Kinds            []graph.Kind
	// Shared finds the ClusterClasses that namespaces share; if it is nil, there are none.
	Shared *Shared
}

// SecretNamespaces returns the namespaces of the infrastructure providers.
func SecretNamespaces(providers inventory.Inventory) []string {
	var namespaces []string
	for _, p := range providers.OfType(clusterctlv1.InfrastructureProviderType) {
		namespaces = append(namespaces, p.Namespace)
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// Objects lists all objects. Kinds that the cluster does not serve have none.
func (r *Reader) Objects(ctx context.Context) ([]graph.Object, error) {
	var mu sync.Mutex
	var all []graph.Object
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	list := func(k graph.Kind, namespace string) {
		group.Go(func() error {
			found, err := r.list(ctx, k, namespace)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, found...)
			return err
		})
	}
	for _, k := range r.Kinds {
		namespace := ""
		if k.Namespaced {
			namespace = r.Namespace
		}
		list(k, namespace)
		if k.Group != "" || k.Kind != "Secret" {
			continue
		}
		for _, other := range r.SecretNamespaces {
			if other != r.Namespace {
				list(k, other)
			}
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return all, nil
}

// Graph lists all objects, and returns those that are moved.
func (r *Reader) Graph(ctx context.Context) (*graph.Graph, error) {
	g, _, err := r.Survey(ctx)
	return g, err
}

// Survey is Graph, and also returns the Secrets and ConfigMaps of the namespace that are not moved.
func (r *Reader) Survey(ctx context.Context) (*graph.Graph, []graph.Left, error) {
	objects, err := r.Objects(ctx)
	if err == nil && r.Shared != nil {
		objects, err = r.Shared.add(ctx, r, objects)
	}
	if err != nil {
		return nil, nil, err
	}
	g, err := graph.Build(objects)
	if err != nil {
		return nil, nil, err
	}
	return g, graph.LeftBehind(objects, g, r.Namespace), nil
}

func (r *Reader) list(ctx context.Context, k graph.Kind, namespace string) ([]graph.Object, error) {
	var all []graph.Object
	what := fmt.Sprintf("list objects of kind %s", k.Kind)
	if namespace != "" {
		what += " in namespace " + namespace
	}
	err := r.Side.Do(ctx, what, func(ctx context.Context) error {
		all = nil
		for token := ""; ; {
			items := &unstructured.UnstructuredList{}
			items.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
			err := r.Side.List(ctx, items, client.InNamespace(namespace), client.Limit(page), client.Continue(token))
			if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return err
			}
			for i := range items.Items {
				all = append(all, graph.Object{Unstructured: &items.Items[i], Kind: k})
			}
			if token = items.GetContinue(); token == "" {
				return nil
			}
		}
	})
	return all, err
}
