// Package class has the commands `clusterctl class publish`, `list` and `prune`, which create, list and delete revisions of ClusterClasses.
//
// What a revision is, and which are unused, package revision decides.
package class

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/revision"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// classKind is the kind of ClusterClasses in the version in which Clusters are read.
func classKind() schema.GroupVersionKind {
	return tree.ClusterKind.GroupVersion().WithKind(revision.ClassKind().Kind)
}

// rolloutKind is the kind of ClusterRollouts, which a management cluster need not have.
func rolloutKind() schema.GroupVersionKind { return fleetv1.GroupVersion.WithKind("ClusterRollout") }

// read reads the ClusterClasses of a namespace, or of all if it is empty, and then who uses them: Clusters and ClusterRollouts of all
// namespaces. allowed is false if the user may only see those of the same namespace.
func read(ctx context.Context, m *management.Cluster, namespace string) (w *revision.World, allowed bool, err error) {
	w, allowed = &revision.World{}, true
	if w.Classes, err = list(ctx, m.Client, classKind(), namespace); err != nil {
		return nil, false, m.OrNotInitialized(ctx, err)
	}
	if w.Clusters, err = list(ctx, m.Client, tree.ClusterKind, ""); apierrors.IsForbidden(err) && namespace != "" {
		allowed = false
		w.Clusters, err = list(ctx, m.Client, tree.ClusterKind, namespace)
	}
	if err != nil {
		return nil, false, err
	}
	where := namespace
	if allowed {
		where = ""
	}
	w.Rollouts, err = list(ctx, m.Client, rolloutKind(), where)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		err = nil
	}
	return w, allowed, err
}

func list(ctx context.Context, c client.Reader, kind schema.GroupVersionKind, namespace string) ([]unstructured.Unstructured, error) {
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.List(ctx, found, client.InNamespace(namespace)); err != nil {
		where := "of all namespaces"
		if namespace != "" {
			where = "of namespace " + namespace
		}
		return nil, fmt.Errorf("cannot list the %s objects %s: %w", kind.Kind, where, err)
	}
	return found.Items, nil
}

// names completes the name of a class.
func names(f *factory.Factory, k *management.Kubeconfig, namespace *string) cobra.CompletionFunc {
	return clusterflags.FirstArgument(func(ctx context.Context) ([]string, error) {
		m, err := f.Connect(*k)
		if err != nil {
			return nil, err
		}
		classes, err := list(ctx, m.Client, classKind(), m.Key(*namespace, "").Namespace)
		rows, rowsErr := (&revision.World{Classes: classes}).Rows()
		if err != nil || rowsErr != nil {
			return nil, err
		}
		var found []string
		for _, r := range rows {
			found = append(found, r.Class)
		}
		return slices.Compact(found), nil
	})
}
