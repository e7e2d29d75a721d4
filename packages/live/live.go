// Package live finds the objects of providers in a management cluster, by their labels.
//
// It reads. What is deleted is decided by package remove, what is replaced by package replace.
package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages/manifest"
)

// parallelLists is how many kinds are listed concurrently.
const parallelLists = 8

// Finder finds objects.
type Finder struct {
	Client client.Reader
	// Resources lists the kinds of the API server.
	Resources discovery.ServerResourcesInterface
	// Kinds are the kinds to list; nil means all that the API server has.
	Kinds []schema.GroupVersionKind
	// Selector selects the objects; nil means those of providers.
	Selector client.ListOption
}

// Objects are the objects of providers, by the value of the provider label.
type Objects map[string][]unstructured.Unstructured

// Find returns the objects that the Selector selects, in any namespace, sorted by kind, namespace and name. Not
// among them are the inventory, objects that controllers derive from others, and objects of kinds that providers define:
// those are objects of users, whatever their labels.
//
// It makes one request per kind. Kinds of an aggregated API server that does not respond are left
// out.
func (f *Finder) Find(ctx context.Context) (Objects, error) {
	if f.Kinds != nil {
		found, err := f.list(ctx, f.Kinds)
		return byProvider(found), err
	}
	crds, err := f.list(ctx, []schema.GroupVersionKind{{Group: "apiextensions.k8s.io", Version: "v1", Kind: manifest.KindCRD}})
	if err != nil {
		return nil, err
	}
	kinds, err := f.kinds(crds)
	if err != nil {
		return nil, err
	}
	found, err := f.list(ctx, kinds)
	return byProvider(append(found, crds...)), err
}

// list returns the objects of some kinds, in no particular order.
func (f *Finder) list(ctx context.Context, kinds []schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	var mu sync.Mutex
	var found []unstructured.Unstructured
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelLists)
	for _, kind := range kinds {
		group.Go(func() error {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			err := f.Client.List(ctx, list, f.selector())
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				return nil // The kind was removed meanwhile, or has no list.
			}
			if err != nil {
				return fmt.Errorf("cannot list the objects of kind %s of providers: %w", kind.Kind, err)
			}
			mu.Lock()
			defer mu.Unlock()
			found = append(found, list.Items...)
			return nil
		})
	}
	return found, group.Wait()
}

// selector returns the Selector. The default selects everything that clusterctl and operators install for providers.
func (f *Finder) selector() client.ListOption {
	if f.Selector != nil {
		return f.Selector
	}
	return client.HasLabels{clusterctlv1.ClusterctlLabel, clusterv1.ProviderNameLabel}
}

// byProvider sorts objects, and groups them by provider. Those with a controller are left out: it deletes them itself.
func byProvider(found []unstructured.Unstructured) Objects {
	slices.SortFunc(found, func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetNamespace(), b.GetNamespace()),
			cmp.Compare(a.GetName(), b.GetName()))
	})
	objects := Objects{}
	for _, o := range found {
		if metav1.GetControllerOfNoCopy(&o) == nil {
			label := o.GetLabels()[clusterv1.ProviderNameLabel]
			objects[label] = append(objects[label], o)
		}
	}
	return objects
}

// kinds returns the kinds to list: all that can be listed and deleted, except CRDs and the kinds that they define.
func (f *Finder) kinds(crds []unstructured.Unstructured) ([]schema.GroupVersionKind, error) {
	lists, err := f.Resources.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("cannot list the kinds of the management cluster: %w", err)
	}
	excluded := derived()
	for i := range crds {
		excluded = append(excluded, Defines(&crds[i]))
	}
	var kinds []schema.GroupVersionKind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("cannot list the kinds of the management cluster: %w", err)
		}
		for _, resource := range list.APIResources {
			kind := version.WithKind(resource.Kind)
			if slices.Contains(resource.Verbs, "list") && slices.Contains(resource.Verbs, "delete") && !slices.Contains(excluded, kind.GroupKind()) {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds, nil
}

// derived returns kinds that are not installed: controllers write them, in part with the labels of what they derive them
// from. The inventory is one of them, and CRDs are listed before.
func derived() []schema.GroupKind {
	return []schema.GroupKind{
		{Kind: "Endpoints"}, {Kind: "Event"}, {Kind: "Node"}, {Kind: "Pod"},
		{Group: "discovery.k8s.io", Kind: "EndpointSlice"},
		{Group: "events.k8s.io", Kind: "Event"},
		{Group: "apps", Kind: "ReplicaSet"}, {Group: "apps", Kind: "ControllerRevision"},
		{Group: clusterctlv1.GroupVersion.Group, Kind: clusterctlv1.ProviderKind},
		{Group: "apiextensions.k8s.io", Kind: manifest.KindCRD},
	}
}

// Defines returns the kind that a CRD defines.
func Defines(crd *unstructured.Unstructured) schema.GroupKind {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}
