package clusterrollout

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// page is how many Clusters are read with one request.
const page = 500

// Kind is the kind of ClusterRollouts.
var Kind = fleetv1.GroupVersion.WithKind("ClusterRollout")

// NotInstalled is the error for a management cluster without the kinds of rollouts.
func NotInstalled() error {
	return errors.New("the management cluster has no ClusterRollouts: install the fleet provider with `clusterctl init --addon fleet`")
}

// Get reads a rollout.
func Get(ctx context.Context, c client.Reader, key client.ObjectKey) (*fleetv1.ClusterRollout, error) {
	r := &fleetv1.ClusterRollout{}
	err := c.Get(ctx, key, r)
	switch {
	case meta.IsNoMatchError(err):
		return nil, NotInstalled()
	case client.IgnoreNotFound(err) == nil && err != nil:
		return nil, fmt.Errorf("there is no ClusterRollout %s in namespace %s: see `kubectl get clusterrollouts -A`, "+
			"and set its namespace with --namespace", key.Name, key.Namespace)
	case err != nil:
		return nil, fmt.Errorf("cannot read ClusterRollout %s: %w", key, err)
	}
	return r, nil
}

// Strategy returns the strategy of a rollout: its own, that which it has begun with, or that which it refers to, which may be among given
// ones. Without a client, only these exist.
func Strategy(
	ctx context.Context, c client.Reader, r *fleetv1.ClusterRollout, given []*fleetv1.ClusterRolloutStrategy,
) (*fleetv1.RolloutStrategy, error) {
	switch name := r.Spec.StrategyRef.Name; {
	case r.Spec.Strategy != nil:
		return r.Spec.Strategy, nil
	case r.Status.Strategy != nil:
		return r.Status.Strategy, nil
	case name == "":
		return nil, fmt.Errorf("ClusterRollout %s: one of spec.strategy and spec.strategyRef must be set", r.Name)
	default:
		for _, s := range given {
			if s.Name == name && s.Namespace == r.Namespace {
				return &s.Spec, nil
			}
		}
		s, key := &fleetv1.ClusterRolloutStrategy{}, client.ObjectKey{Namespace: r.Namespace, Name: name}
		if err := c.Get(ctx, key, s); err != nil {
			if client.IgnoreNotFound(err) == nil {
				return nil, fmt.Errorf("ClusterRollout %s: spec.strategyRef: there is no ClusterRolloutStrategy %s: create it, or add it to the file",
					r.Name, key)
			}
			return nil, fmt.Errorf("ClusterRollout %s: reading ClusterRolloutStrategy %s: %w", r.Name, key, err)
		}
		return &s.Spec, nil
	}
}

// ID returns what the entries of Clusters call a rollout.
func ID(r *fleetv1.ClusterRollout) types.UID {
	if id := r.Annotations[fleetv1.RolloutIDAnnotation]; id != "" {
		return types.UID(id)
	}
	return r.UID
}

// Clusters reads the Clusters of a namespace, a page at a time.
func Clusters(ctx context.Context, c client.Reader, namespace string) ([]*clusterv1.Cluster, error) {
	var all []*clusterv1.Cluster
	err := pages(func(next string) (string, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("ClusterList"))
		if err := c.List(ctx, list, client.InNamespace(namespace), client.Limit(page), client.Continue(next)); err != nil {
			return "", err
		}
		for i := range list.Items {
			cluster := &clusterv1.Cluster{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, cluster); err != nil {
				return "", fmt.Errorf("decoding Cluster %s: %w", list.Items[i].GetName(), err)
			}
			all = append(all, cluster)
		}
		return list.GetContinue(), nil
	})
	return all, err
}

// Entry is a Cluster, and what the rollout knows of it.
type Entry struct {
	Cluster string
	*fleetv1.RolloutEntry
}

// Entries reads the entries of a rollout's Clusters, a page at a time.
func Entries(ctx context.Context, c client.Reader, r *fleetv1.ClusterRollout) ([]Entry, error) {
	var all []Entry
	err := pages(func(next string) (string, error) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("ClusterList"))
		if err := c.List(ctx, list, client.InNamespace(r.Namespace), client.Limit(page), client.Continue(next)); err != nil {
			return "", err
		}
		for i := range list.Items {
			// The controller reports what cannot be decoded.
			if e, err := fleetv1.RolloutEntryOf(&list.Items[i]); err == nil && e != nil && e.ID == ID(r) {
				all = append(all, Entry{list.Items[i].Name, e})
			}
		}
		return list.Continue, nil
	})
	return all, err
}

// pages reads pages until there is none left.
func pages(read func(next string) (string, error)) error {
	next := ""
	for {
		following, err := read(next)
		if err != nil {
			return fmt.Errorf("listing Clusters: %w", err)
		}
		if following == "" {
			return nil
		}
		next = following
	}
}

// decode converts an object, and returns an error for unknown fields.
func decode(u *unstructured.Unstructured, obj client.Object) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, obj, true); err != nil {
		return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return nil
}
