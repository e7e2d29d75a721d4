package cluster

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
)

// Claims returns the ports to which other InMemoryClusters have a prior claim, for lab.Lab.Claims. Users can set any port in
// a spec, and after a restart nothing listens yet, so first come, first served is not safe. The port in status belongs to
// the object, because only the provider writes it. Of several objects with a port in spec and none in status, as after
// clusterctl move, the oldest has the claim. A port in spec that differs from the one in status is not a claim.
func Claims(cached client.Reader) func(context.Context, *inmemoryv1.InMemoryCluster) (map[int]bool, error) {
	return func(ctx context.Context, c *inmemoryv1.InMemoryCluster) (map[int]bool, error) {
		list := &inmemoryv1.InMemoryClusterList{}
		if err := cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing InMemoryClusters: %w", err)
		}
		taken := map[int]bool{}
		for i := range list.Items {
			other := &list.Items[i]
			if port := claimed(other); other.UID != c.UID && port != 0 && precedes(other, c, port) {
				taken[port] = true
			}
		}
		return taken, nil
	}
}

// claimed returns the port that an InMemoryCluster claims, or 0.
func claimed(c *inmemoryv1.InMemoryCluster) int {
	if c.Status.Port != 0 {
		return c.Status.Port
	}
	return c.Spec.ControlPlaneEndpoint.Port
}

// precedes reports whether the claim of a to a port precedes that of b, if any.
func precedes(a, b *inmemoryv1.InMemoryCluster, port int) bool {
	if claimed(b) != port {
		return true
	}
	if recorded := a.Status.Port != 0; recorded != (b.Status.Port != 0) {
		return recorded
	}
	return older(a, b)
}

func older(a, b *inmemoryv1.InMemoryCluster) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.UID < b.UID
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}
