package topologyplan

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// affected returns the ClusterClasses that are in the input or refer to templates in it, and the Clusters that are in the input or have
// one of these classes, each sorted.
func (w *World) affected(
	ctx context.Context, namespace string, input []*unstructured.Unstructured,
) (classes, clusters []client.ObjectKey, err error) {
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
	clusterList := &clusterv1.ClusterList{}
	if err := w.List(ctx, clusterList, client.InNamespace(namespace)); err != nil {
		return nil, nil, fmt.Errorf("listing Clusters: %w", err)
	}
	for i := range clusterList.Items {
		cluster := &clusterList.Items[i]
		if !cluster.Spec.Topology.IsDefined() {
			continue
		}
		if given.Has(clusterKind+"/"+cluster.Name) || slices.Contains(classes, cluster.GetClassKey()) {
			clusters = append(clusters, client.ObjectKeyFromObject(cluster))
		}
	}
	return classes, clusters, nil
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
