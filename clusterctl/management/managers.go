package management

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// coreLease is the Lease of the leader of the core manager, in any namespace, of all versions.
	coreLease = "controller-leader-election-capi"
	// leaseAge is for how long after its renewal a Lease shows that its holder runs: several times the duration of Leases of managers.
	leaseAge = 2 * time.Minute
	// maxLeases bounds how many Leases are read. Nodes have others.
	maxLeases = 5000
)

// WithoutProviders returns a warning if the kinds of Cluster API are installed, and no provider is: Clusters show what was reported last,
// and nothing changes. It is empty if a provider is there, or the user may not find out.
func (c *Cluster) WithoutProviders(ctx context.Context) string {
	deployments := &metav1.PartialObjectMetadataList{}
	deployments.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DeploymentList"))
	err := c.Client.List(ctx, deployments, client.HasLabels{clusterv1.ProviderNameLabel}, client.Limit(1))
	if err != nil || len(deployments.Items) > 0 || ManagersMayRun(ctx, c.Client, time.Now()) {
		return ""
	}
	return "no provider is installed in this management cluster: what is shown was reported before they were deleted, and no controller " +
		"reconciles any Cluster. Install them with `clusterctl init`"
}

// ManagersMayRun reports whether managers may run that have no Deployments in a management cluster, outside of it or installed in another
// way: the leader of the core manager has renewed its Lease lately, or the user may not read Leases.
func ManagersMayRun(ctx context.Context, c client.Reader, now time.Time) bool {
	leases := &coordinationv1.LeaseList{}
	if err := c.List(ctx, leases, client.MatchingFields{"metadata.name": coreLease}, client.Limit(maxLeases)); err != nil {
		return true
	}
	for i := range leases.Items {
		if renewed := leases.Items[i].Spec.RenewTime; renewed != nil && now.Sub(renewed.Time) < leaseAge {
			return true
		}
	}
	return false
}
