// Package snapshot reads the objects of one Cluster from a management cluster, once or as they change.
//
// It makes one request, or one watch, per kind: their number does not grow with the number of Machines. Package tree
// selects what to read.
package snapshot

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// Read returns the objects of a Cluster's tree. Missing objects and kinds are left out, even the Cluster.
func Read(ctx context.Context, c client.Client, cluster types.NamespacedName, o tree.Options) (*tree.Objects, error) {
	r := &reader{Client: c, cluster: cluster, objects: tree.NewObjects(), done: map[tree.Selection]bool{}}
	for {
		open := r.open(tree.Selections(cluster, r.objects, o))
		if len(open) == 0 {
			break
		}
		if err := r.read(ctx, open, true); err != nil {
			return nil, err
		}
	}
	// Objects without the Cluster's label are found by listing their kind in the namespace.
	if missing := tree.Missing(cluster, r.objects, o); len(missing) > 0 {
		if err := r.read(ctx, missing, false); err != nil {
			return nil, err
		}
	}
	return r.objects, nil
}

type reader struct {
	client.Client
	cluster types.NamespacedName
	done    map[tree.Selection]bool

	mu      sync.Mutex
	objects *tree.Objects
}

// open returns the selections that have not been read yet.
func (r *reader) open(list []tree.Selection) []tree.Selection {
	var open []tree.Selection
	for _, s := range list {
		if !r.done[s] {
			r.done[s] = true
			open = append(open, s)
		}
	}
	return open
}

func (r *reader) read(ctx context.Context, selections []tree.Selection, labeled bool) error {
	var group errgroup.Group // It cancels nothing: client-go logs requests that are canceled.
	for _, s := range selections {
		group.Go(func() error {
			err := r.one(ctx, s, labeled)
			if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) && s.Kind != tree.ClusterKind {
				return nil
			}
			if err != nil {
				return fmt.Errorf("cannot read cluster %s: %w", r.cluster, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (r *reader) one(ctx context.Context, s tree.Selection, labeled bool) error {
	if served, err := Served(r.RESTMapper(), s.Kind); err == nil {
		s.Kind = served // Otherwise, the request fails.
	}
	if s.Name != "" {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(s.Kind)
		if err := r.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Name}, u); err != nil {
			return err
		}
		r.add(u)
		return nil
	}
	list := listOf(s)
	options := []client.ListOption{client.InNamespace(s.Namespace)}
	if labeled {
		options = append(options, client.MatchingLabels{clusterv1.ClusterNameLabel: r.cluster.Name})
	}
	if err := r.List(ctx, list, options...); err != nil {
		return err
	}
	for i := range list.Items {
		r.add(&list.Items[i])
	}
	return nil
}

func (r *reader) add(u *unstructured.Unstructured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.objects.Add(u)
}

// Served returns the kind in a version that the API server serves: the given one, or else the one that it prefers. A reference by group has
// no version; where this program converts it to v1beta1, it is guessed. The error is that of the mapper.
func Served(mapper meta.RESTMapper, kind schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if !meta.IsNoMatchError(err) {
		return kind, err
	}
	served, err := mapper.RESTMapping(kind.GroupKind())
	if err != nil {
		return kind, err
	}
	return served.GroupVersionKind, nil
}

func listOf(s tree.Selection) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(s.Kind.GroupVersion().WithKind(s.Kind.Kind + "List"))
	return list
}
