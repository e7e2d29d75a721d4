package ownership

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Objects with spec.clusterName, such as Machines and MachinePools, are members of that Cluster from their creation, before they have
// its label and owner reference.

// PausedByClusterName returns a function that reports whether the Cluster of a member is paused, for step.Controller. clusterName
// returns spec.clusterName.
func PausedByClusterName[T client.Object](c client.Reader, clusterName func(T) string) func(context.Context, T) (bool, error) {
	return func(ctx context.Context, obj T) (bool, error) {
		cluster, err := ClusterNamed(ctx, c, client.ObjectKey{Namespace: obj.GetNamespace(), Name: clusterName(obj)})
		return cluster != nil && ptr.Deref(cluster.Spec.Paused, false), err
	}
}

// WaitForCluster is the first step of members: it waits until their Cluster exists. cluster is nil if it does not.
func WaitForCluster(cluster *clusterv1.Cluster, clusterName string) step.Result {
	if cluster == nil {
		return step.Wait("Cluster " + clusterName + " (spec.clusterName) to exist")
	}
	return step.Done()
}

// ClusterReference returns an owner reference to a Cluster, which is not the controller.
func ClusterReference(cluster *clusterv1.Cluster) metav1.OwnerReference {
	return Reference(cluster, clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind), false)
}

// AddClusterLabel adds the label cluster.x-k8s.io/cluster-name of a Cluster.
func AddClusterLabel(obj metav1.Object, cluster *clusterv1.Cluster) {
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1.ClusterNameLabel] = cluster.Name
	obj.SetLabels(labels)
}

// AddCluster adds the label of a Cluster, and the Cluster as an owner.
func AddCluster(obj metav1.Object, cluster *clusterv1.Cluster) {
	AddClusterLabel(obj, cluster)
	refs, _ := Ensure(obj.GetOwnerReferences(), ClusterReference(cluster))
	obj.SetOwnerReferences(refs)
}
