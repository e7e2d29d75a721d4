package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
)

// Claims returns who may have a port that an InMemoryCluster asks for, for lab.Lab.Claims: of all that ask for it, the
// oldest. Otherwise, after a restart, it would belong to whoever comes first, and everybody can write a port that is
// not theirs.
func Claims(cached client.Reader) func(context.Context, *inmemoryv1.InMemoryCluster) (*types.NamespacedName, error) {
	return func(ctx context.Context, c *inmemoryv1.InMemoryCluster) (*types.NamespacedName, error) {
		list := &inmemoryv1.InMemoryClusterList{}
		if err := cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing InMemoryClusters: %w", err)
		}
		for i := range list.Items {
			other := &list.Items[i]
			if other.UID != c.UID && other.Spec.ControlPlaneEndpoint.Port == c.Spec.ControlPlaneEndpoint.Port && older(other, c) {
				key := client.ObjectKeyFromObject(other)
				return &key, nil
			}
		}
		return nil, nil
	}
}

func older(a, b *inmemoryv1.InMemoryCluster) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.UID < b.UID
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}
