package cluster

import (
	"cmp"
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
)

// Claims returns the ports to which other objects have a prior claim, for lab.Lab.Claims. Users can set any port in
// a spec, and after a restart nothing listens yet, so first come, first served is not safe. The port in status belongs to
// the object, because only the provider writes it. Of several objects with a port in spec and none in status, as all have after
// clusterctl move, and those of kinds without such a field always, the oldest has the claim. A port in spec that differs from the
// one in status is not a claim.
func Claims(cached client.Reader, of kinds.Set) func(context.Context, kinds.Cluster) (map[int]bool, error) {
	return func(ctx context.Context, c kinds.Cluster) (map[int]bool, error) {
		list := of.Clusters()
		if err := cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing %ss: %w", of.ClusterKind, err)
		}
		taken := map[int]bool{}
		for _, other := range of.ClusterItems(list) {
			if port := claimed(other); other.UID != c.UID && port != 0 && precedes(other, c, port) {
				taken[port] = true
			}
		}
		return taken, nil
	}
}

// claimed returns the port that an object claims, or 0.
func claimed(c kinds.Cluster) int {
	_, port := c.Endpoint()
	return cmp.Or(c.RecordedPort(), port)
}

// precedes reports whether the claim of a to a port precedes that of b, if any.
func precedes(a, b kinds.Cluster, port int) bool {
	if claimed(b) != port {
		return true
	}
	if recorded := a.RecordedPort() != 0; recorded != (b.RecordedPort() != 0) {
		return recorded
	}
	return older(a, b)
}

func older(a, b kinds.Cluster) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.UID < b.UID
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}
