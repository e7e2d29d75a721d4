package topologyplan

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
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
		if cluster.Spec.Topology == nil {
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
	refs := []*clusterv1.LocalObjectTemplate{&s.Infrastructure, &s.ControlPlane.LocalObjectTemplate, s.ControlPlane.MachineInfrastructure}
	for i := range s.Workers.MachineDeployments {
		t := &s.Workers.MachineDeployments[i].Template
		refs = append(refs, &t.Bootstrap, &t.Infrastructure)
	}
	for i := range s.Workers.MachinePools {
		t := &s.Workers.MachinePools[i].Template
		refs = append(refs, &t.Bootstrap, &t.Infrastructure)
	}
	return slices.ContainsFunc(refs, func(t *clusterv1.LocalObjectTemplate) bool {
		return t != nil && t.Ref != nil && given.Has(t.Ref.Kind+"/"+t.Ref.Name)
	})
}
