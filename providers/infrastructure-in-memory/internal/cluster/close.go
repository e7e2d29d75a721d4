package cluster

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// close shuts down the workload cluster. The Cluster may no longer exist, so its name is from the annotation, or, if that
// was never written, from the label. Users can write both, so the lab checks the UID.
func (c *Controller) close(_ context.Context, obj kinds.Cluster) (step.Result, error) {
	key := types.NamespacedName{Namespace: obj.Namespace, Name: obj.Labels[clusterv1.ClusterNameLabel]}
	if _, name, ok := strings.Cut(obj.Annotations[inmemoryv1.ListenerAnnotationName], "/"); ok {
		key.Name = name
	}
	if err := c.lab.Close(key, obj.UID); err != nil {
		return step.Done(), err
	}
	controllerutil.RemoveFinalizer(obj.Object, c.kinds.ClusterFinalizer)
	return step.Stop(), nil
}
