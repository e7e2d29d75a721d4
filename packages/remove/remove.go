// Package remove deletes providers from a management cluster.
//
// It keeps what users would lose: the Namespace and the CustomResourceDefinitions, unless they are included. Which objects a
// provider has is found by package live.
package remove

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages/live"
	"sigs.k8s.io/cluster-api/packages/manifest"
)

const (
	// parallelDeletes is how many objects of one rank are deleted concurrently.
	parallelDeletes = 8
	// gonePoll and goneTimeout are for CustomResourceDefinitions, which the API server deletes in the background.
	gonePoll    = 100 * time.Millisecond
	goneTimeout = time.Minute
)

// Options are what is deleted in addition.
type Options struct {
	// Namespace includes the provider's Namespace, with everything in it.
	Namespace bool
	// CRDs includes the provider's CustomResourceDefinitions, with all objects of their kinds. See Used.
	CRDs bool
}

// Select returns the objects of a provider to delete, in the order in which they must be deleted: webhook configurations
// first, so that none calls a provider that is gone, and the Namespace last. objects are those with the provider's labels. All
// cluster-scoped ones are selected, whatever their names, and the namespaced ones in the provider's Namespace.
func Select(p *clusterctlv1.Provider, objects []unstructured.Unstructured, o Options) []unstructured.Unstructured {
	var selected []unstructured.Unstructured
	for i := range objects {
		if o.includes(p, &objects[i]) {
			selected = append(selected, objects[i])
		}
	}
	slices.SortStableFunc(selected, func(a, b unstructured.Unstructured) int {
		return cmp.Compare(manifest.Rank(b.GetKind()), manifest.Rank(a.GetKind()))
	})
	return selected
}

func (o Options) includes(p *clusterctlv1.Provider, object *unstructured.Unstructured) bool {
	switch kind := object.GetKind(); {
	case object.GetNamespace() != "":
		return object.GetNamespace() == p.Namespace && !o.Namespace
	case kind == "Namespace":
		return object.GetName() == p.Namespace && o.Namespace
	case kind == manifest.KindCRD:
		return o.CRDs
	default:
		return true
	}
}

// Used returns a UsedError if there are objects of the kinds that CRDs define, which would be deleted with the CRDs. Components of
// the providers that are deleted do not count: objects with their labels, without namespace or in the provider's. Other objects
// than CRDs are ignored.
func Used(ctx context.Context, c client.Reader, providers []clusterctlv1.Provider, objects []unstructured.Unstructured) error {
	found := make([]string, len(objects))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelDeletes)
	for i := range objects {
		if objects[i].GetKind() != manifest.KindCRD {
			continue
		}
		group.Go(func() error {
			kind := live.Defines(&objects[i])
			user, err := objectOfUser(ctx, c, providers, kind.WithVersion(storageVersion(&objects[i])))
			if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
				return nil // The CRD is being deleted.
			}
			if err != nil {
				return fmt.Errorf("cannot check whether there are objects of kind %s: %w", kind, err)
			}
			if user != nil {
				found[i] = fmt.Sprintf("%s %s", kind.Kind, client.ObjectKeyFromObject(user))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if found = slices.DeleteFunc(found, func(s string) bool { return s == "" }); len(found) == 0 {
		return nil
	}
	return &UsedError{Examples: found}
}

// UsedError is why CustomResourceDefinitions cannot be deleted: there are objects of their kinds.
type UsedError struct {
	// Examples are one object per kind.
	Examples []string
}

// Error returns the reason, and what to do.
func (e *UsedError) Error() string {
	return fmt.Sprintf("the CustomResourceDefinitions cannot be deleted, because there are objects of their kinds, "+
		"for example %s: delete these first, or keep the CustomResourceDefinitions. If they remain although they are being deleted, their "+
		"provider is missing, which removes their finalizers: install it again with `clusterctl init`",
		strings.Join(e.Examples, ", "))
}

// objectOfUser returns an object of a kind that is not a component of the providers, nil if there is none. Most are found by
// their labels with one request; objects with the label of one of the providers are looked at.
func objectOfUser(
	ctx context.Context, c client.Reader, providers []clusterctlv1.Provider, kind schema.GroupVersionKind,
) (*metav1.PartialObjectMetadata, error) {
	var names []string
	for i := range providers {
		names = append(names, providers[i].ManifestLabel())
	}
	if len(names) == 0 {
		names = []string{""} // The value of no provider.
	}
	for _, operator := range []selection.Operator{selection.NotIn, selection.In} {
		requirement, err := labels.NewRequirement(clusterv1.ProviderNameLabel, operator, names)
		if err != nil {
			return nil, err
		}
		options := &client.ListOptions{LabelSelector: labels.NewSelector().Add(*requirement), Limit: 1}
		if operator == selection.In {
			options.Limit = 0
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(ctx, list, options); err != nil {
			return nil, err
		}
		for i := range list.Items {
			if !slices.ContainsFunc(providers, func(p clusterctlv1.Provider) bool { return isComponent(&p, &list.Items[i]) }) {
				return &list.Items[i], nil
			}
		}
	}
	return nil, nil
}

// isComponent reports whether an object is a component of a provider: by the same labels and scopes as all others.
func isComponent(p *clusterctlv1.Provider, o client.Object) bool {
	_, labeled := o.GetLabels()[clusterctlv1.ClusterctlLabel]
	return labeled && o.GetLabels()[clusterv1.ProviderNameLabel] == p.ManifestLabel() &&
		(o.GetNamespace() == "" || o.GetNamespace() == p.Namespace)
}

// storageVersion is the version that needs no conversion, which may no longer work.
func storageVersion(crd *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, item := range versions {
		if v, ok := item.(map[string]any); ok && v["storage"] == true {
			name, _ := v["name"].(string)
			return name
		}
	}
	return ""
}

// Delete deletes the objects in their order, those of the same kind concurrently, and waits until CRDs are gone. Objects
// that do not exist are not an error.
func Delete(ctx context.Context, c client.Client, objects []unstructured.Unstructured) error {
	for start := 0; start < len(objects); {
		end := start + 1
		for end < len(objects) && objects[end].GetKind() == objects[start].GetKind() {
			end++
		}
		group, groupCtx := errgroup.WithContext(ctx)
		group.SetLimit(parallelDeletes)
		for i := start; i < end; i++ {
			group.Go(func() error { return deleteOne(groupCtx, c, &objects[i]) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		start = end
	}
	return nil
}

func deleteOne(ctx context.Context, c client.Client, o *unstructured.Unstructured) error {
	err := c.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot delete %s: %w", manifest.Describe(o), err)
	}
	if o.GetKind() != manifest.KindCRD {
		return nil
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	err = wait.PollUntilContextTimeout(ctx, gonePoll, goneTimeout, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(o), live)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("%s is being deleted, but objects of its kind remain: see their finalizers: %w", manifest.Describe(o), err)
	}
	return nil
}
