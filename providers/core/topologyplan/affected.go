package topologyplan

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// affected returns the ClusterClasses that are in the input or refer to templates in it, and the Clusters that are in the input or have
// one of these classes, in any namespace that the user may list, each sorted.
func (w *World) affected(
	ctx context.Context, namespace string, input []*unstructured.Unstructured,
) (classes, clusters []client.ObjectKey, err error) {
	if cluster, only := onlyCluster(input); only {
		return nil, w.withTopology(ctx, cluster), nil
	}
	given := sets.New[string]()
	for _, u := range input {
		given.Insert(u.GetKind() + "/" + u.GetName())
	}
	classList := &clusterv1.ClusterClassList{}
	if err := w.List(ctx, classList, client.InNamespace(namespace)); err != nil {
		return nil, nil, fmt.Errorf("listing ClusterClasses: %w", err)
	}
	for i := range classList.Items {
		class := &classList.Items[i]
		if given.Has(classKind+"/"+class.Name) || refersTo(class, given) {
			classes = append(classes, client.ObjectKeyFromObject(class))
		}
	}
	all, err := w.users(ctx, namespace, classes)
	if err != nil {
		return nil, nil, fmt.Errorf("listing Clusters: %w", err)
	}
	for i := range all {
		cluster := &all[i]
		if !cluster.Spec.Topology.IsDefined() {
			continue
		}
		inInput := cluster.Namespace == namespace && given.Has(clusterKind+"/"+cluster.Name)
		if inInput || slices.Contains(classes, cluster.GetClassKey()) {
			clusters = append(clusters, client.ObjectKeyFromObject(cluster))
		}
	}
	return classes, clusters, nil
}

// onlyCluster returns the Cluster of an input that has nothing else.
func onlyCluster(input []*unstructured.Unstructured) (client.ObjectKey, bool) {
	if len(input) != 1 || input[0].GetKind() != clusterKind || input[0].GroupVersionKind().Group != clusterv1.GroupVersion.Group {
		return client.ObjectKey{}, false
	}
	return client.ObjectKeyFromObject(input[0]), true
}

// withTopology returns the key of a Cluster in this world if it has a topology.
func (w *World) withTopology(ctx context.Context, key client.ObjectKey) []client.ObjectKey {
	cluster := &clusterv1.Cluster{}
	if err := w.Get(ctx, key, cluster); err != nil || !cluster.Spec.Topology.IsDefined() {
		return nil
	}
	return []client.ObjectKey{key}
}

// users returns the Clusters that may be affected: of all namespaces if classes are, unless the user may not list them.
func (w *World) users(ctx context.Context, namespace string, classes []client.ObjectKey) ([]clusterv1.Cluster, error) {
	list := &clusterv1.ClusterList{}
	if len(classes) > 0 {
		err := w.List(ctx, list)
		if err == nil || !apierrors.IsForbidden(err) {
			return list.Items, err
		}
	}
	err := w.List(ctx, list, client.InNamespace(namespace))
	return list.Items, err
}

// refersTo reports whether a class refers to one of the given objects, kind and name.
func refersTo(class *clusterv1.ClusterClass, given sets.Set[string]) bool {
	s := &class.Spec
	refs := []clusterv1.ClusterClassTemplateReference{
		s.Infrastructure.TemplateRef, s.ControlPlane.TemplateRef, s.ControlPlane.MachineInfrastructure.TemplateRef,
	}
	for i := range s.Workers.MachineDeployments {
		t := &s.Workers.MachineDeployments[i]
		refs = append(refs, t.Bootstrap.TemplateRef, t.Infrastructure.TemplateRef)
	}
	for i := range s.Workers.MachinePools {
		t := &s.Workers.MachinePools[i]
		refs = append(refs, t.Bootstrap.TemplateRef, t.Infrastructure.TemplateRef)
	}
	return slices.ContainsFunc(refs, func(ref clusterv1.ClusterClassTemplateReference) bool { return given.Has(ref.Kind + "/" + ref.Name) })
}
