package cluster

import (
	"context"
	"errors"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/lab"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

func (c *Controller) open(ctx context.Context, obj kinds.Cluster) (step.Result, error) {
	cluster, err := ownership.ClusterOf(ctx, c.Client, obj.Object)
	if err != nil {
		return step.Done(), err
	}
	if cluster == nil || !ownership.Has(obj.Object, cluster) {
		return step.Wait("an owner reference to a Cluster"), nil
	}
	if ref := cluster.Spec.InfrastructureRef; ref.IsDefined() && (ref.Kind != c.kinds.ClusterKind || ref.Name != obj.Name) {
		return step.Wait("a reference from its Cluster"), nil // The Cluster references another one.
	}
	key := client.ObjectKeyFromObject(cluster)
	c.lab.Inherit(obj, cluster)
	group, _, err := c.lab.Open(ctx, obj, key)
	if err != nil {
		failed := error(&step.Error{Reason: inmemoryv1.EndpointFailedReason, Err: err})
		if errors.Is(err, lab.ErrInvalidEndpoint) {
			failed = step.Terminal(failed)
		}
		return step.Done(), failed
	}
	if err := setFaults(group, obj); err != nil {
		return step.Done(), err
	}
	if ptr.Deref(cluster.Spec.Paused, false) {
		return step.Done().KeepCondition(), nil // It only runs again: nothing is written.
	}
	controllerutil.AddFinalizer(obj.Object, c.kinds.ClusterFinalizer)
	if obj.Annotations == nil {
		obj.Annotations = map[string]string{}
	}
	obj.Annotations[inmemoryv1.ListenerAnnotationName] = key.String()
	obj.SetReady()
	return step.Done(), nil
}

// setFaults sets the faults of the annotation, and removes them if there is none.
func setFaults(group *cloud.Group, obj kinds.Cluster) error {
	faults, err := lab.Faults(obj)
	if err != nil {
		return step.Terminal(err)
	}
	return group.SetFaults(faults)
}
