package main

import (
	"context"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// parallelCopies is how many Clusters are copied concurrently.
const parallelCopies = 16

// overview creates a Cluster with Machines, copies it until there are this many, and measures the command that lists them. The
// copies are paused, have no Machines, and have the size of the original: Cluster, control plane and MachineDeployment.
func (w *world) overview(ctx context.Context, out io.Writer, clusters int) error {
	if err := w.create(ctx, checkedCluster("d0-", 1)); err != nil {
		return err
	}
	if err := w.awaitRunning(ctx, "d0-", 2); err != nil {
		return err
	}
	if err := pause(ctx, calm); err != nil {
		return err
	}
	originals, err := w.originals(ctx)
	if err != nil {
		return err
	}
	group, copying := errgroup.WithContext(ctx)
	group.SetLimit(parallelCopies)
	for i := 1; i < clusters; i++ {
		group.Go(func() error {
			for _, o := range originals {
				if err := w.copyOf(copying, o, fmt.Sprintf("d%d-c", i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	fmt.Fprintf(out, "| clusterctl, %d Clusters | requests | response | time |\n|---|---|---|---|\n", clusters)
	_, err = w.read(ctx, out, getClusters(clusters))
	return err
}

// originals returns the Cluster, its control plane and its MachineDeployment.
func (w *world) originals(ctx context.Context) ([]*unstructured.Unstructured, error) {
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(tree.ClusterKind)
	if err := w.Client.Get(ctx, types.NamespacedName{Namespace: "default", Name: "d0-c"}, cluster); err != nil {
		return nil, err
	}
	plane := &unstructured.Unstructured{}
	plane.SetAPIVersion(tree.Text(cluster, "spec", "controlPlaneRef", "apiVersion"))
	plane.SetKind(tree.Text(cluster, "spec", "controlPlaneRef", "kind"))
	if err := w.Client.Get(ctx, types.NamespacedName{Namespace: "default", Name: tree.Text(cluster, "spec", "controlPlaneRef", "name")},
		plane); err != nil {
		return nil, err
	}
	deployments := &unstructured.UnstructuredList{}
	deployments.SetGroupVersionKind(tree.MachineDeploymentKind)
	if err := w.Client.List(ctx, deployments, client.InNamespace("default"),
		client.MatchingLabels{clusterv1.ClusterNameLabel: "d0-c"}); err != nil {
		return nil, err
	}
	if len(deployments.Items) != 1 {
		return nil, fmt.Errorf("the cluster has %d MachineDeployments, want 1", len(deployments.Items))
	}
	return []*unstructured.Unstructured{cluster, plane, &deployments.Items[0]}, nil
}

// copyOf creates a copy of an object, with its status, for a Cluster of this name.
func (w *world) copyOf(ctx context.Context, original *unstructured.Unstructured, cluster string) error {
	o := original.DeepCopy()
	o.SetName(cluster)
	o.SetUID("")
	o.SetResourceVersion("")
	o.SetOwnerReferences(nil)
	o.SetManagedFields(nil)
	o.SetFinalizers(nil)
	labels := o.GetLabels()
	labels[clusterv1.ClusterNameLabel] = cluster
	o.SetLabels(labels)
	spec := func(value any, path ...string) error {
		return unstructured.SetNestedField(o.Object, value, append([]string{"spec"}, path...)...)
	}
	switch original.GetKind() {
	case tree.ClusterKind.Kind:
		if err := spec(true, "paused"); err != nil {
			return err
		}
		if err := spec(cluster, "controlPlaneRef", "name"); err != nil {
			return err
		}
	case tree.MachineDeploymentKind.Kind:
		if err := spec(cluster, "clusterName"); err != nil {
			return err
		}
		if err := spec(cluster, "template", "spec", "clusterName"); err != nil {
			return err
		}
	}
	status := o.Object["status"]
	if err := w.Client.Create(ctx, o); err != nil {
		return fmt.Errorf("copying %s %s: %w", o.GetKind(), original.GetName(), err)
	}
	o.Object["status"] = status
	if err := w.Client.Status().Update(ctx, o); err != nil {
		return fmt.Errorf("copying the status of %s %s: %w", o.GetKind(), original.GetName(), err)
	}
	return nil
}
