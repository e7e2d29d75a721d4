package cluster

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
)

// Claims returns the ports that other InMemoryClusters have a better claim to than one of them, for lab.Lab.Claims. Anybody
// can write any port into a spec, and after a restart nothing listens yet, so first come first served would not do. The
// port in status, which the provider alone writes, is that object's. Of several that have a port in their spec and none in
// status, as after clusterctl move, the oldest has the better claim. Ports in the spec of an object with another one in
// status are no claim at all.
func Claims(cached client.Reader) func(context.Context, *inmemoryv1.InMemoryCluster) (map[int]bool, error) {
	return func(ctx context.Context, c *inmemoryv1.InMemoryCluster) (map[int]bool, error) {
		list := &inmemoryv1.InMemoryClusterList{}
		if err := cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing InMemoryClusters: %w", err)
		}
		taken := map[int]bool{}
		for i := range list.Items {
			other := &list.Items[i]
			if port := claimed(other); other.UID != c.UID && port != 0 && better(other, c, port) {
				taken[port] = true
			}
		}
		return taken, nil
	}
}

// claimed is the port that an InMemoryCluster has a claim to; 0 is none.
func claimed(c *inmemoryv1.InMemoryCluster) int {
	if c.Status.Port != 0 {
		return c.Status.Port
	}
	return c.Spec.ControlPlaneEndpoint.Port
}

// better is whether a, which has a claim to a port, has a better one than b.
func better(a, b *inmemoryv1.InMemoryCluster, port int) bool {
	if claimed(b) != port {
		return true
	}
	if onRecord := a.Status.Port != 0; onRecord != (b.Status.Port != 0) {
		return onRecord
	}
	return older(a, b)
}

func older(a, b *inmemoryv1.InMemoryCluster) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.UID < b.UID
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}
