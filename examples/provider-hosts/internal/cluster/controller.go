package cluster

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Controller reconciles HostClusters.
type Controller struct{ step.Clients }

// Declared returns the controller. It ignores HostClusters that are managed externally.
func (c *Controller) Declared() step.Controller[*hostsv1.HostCluster, *hostsv1.HostCluster] {
	ours := func(obj *hostsv1.HostCluster) bool { return !ownership.ManagedExternally(obj) }
	return step.Controller[*hostsv1.HostCluster, *hostsv1.HostCluster]{
		Name: "hostcluster",
		New:  func() *hostsv1.HostCluster { return &hostsv1.HostCluster{} },
		Watches: []step.Watch{
			step.Mapped(&clusterv1.Cluster{}, watch.Infrastructure("HostCluster"), watch.Cluster(watch.Paused, watch.Endpoint)),
			step.Mapped(&hostsv1.Host{}, c.ofHost, predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})),
		},
		Paused: ownership.PausedByCluster[*hostsv1.HostCluster](c.Client),
		Scope:  step.Self[*hostsv1.HostCluster],
		Steps:  []step.Step[*hostsv1.HostCluster]{step.When(ours, step.Do("endpoint", c.endpoint).Sets(clusterv1.ReadyCondition))},
	}
}

func (c *Controller) endpoint(ctx context.Context, obj *hostsv1.HostCluster) (step.Result, error) {
	cluster, err := ownership.ClusterOf(ctx, c.Client, obj)
	if err != nil {
		return step.Done(), err
	}
	if cluster == nil || !ownership.Has(obj, cluster) {
		return step.Wait("a Cluster to own it"), nil
	}
	if obj.Spec.ControlPlaneEndpoint.IsZero() {
		obj.Spec.ControlPlaneEndpoint = cluster.Spec.ControlPlaneEndpoint
	}
	if !obj.Spec.ControlPlaneEndpoint.IsValid() {
		return step.Wait("spec.controlPlaneEndpoint to be set here or in the Cluster").Because("WaitingForEndpoint").
			Severity(clusterv1.ConditionSeverityWarning), nil
	}
	hosts := &hostsv1.HostList{}
	if err := c.Client.List(ctx, hosts, client.InNamespace(obj.Namespace)); err != nil {
		return step.Done(), fmt.Errorf("listing Hosts: %w", err)
	}
	obj.Status.FailureDomains = zones(hosts.Items)
	obj.Status.Ready = true
	return step.Done(), nil
}

// zones returns the failure domains of Hosts. Those with a Host for control planes are suitable for control planes.
func zones(hosts []hostsv1.Host) clusterv1.FailureDomains {
	all := clusterv1.FailureDomains{}
	for _, host := range hosts {
		if zone := host.Labels[hostsv1.ZoneLabel]; zone != "" {
			suits := len(host.Spec.Roles) == 0 || slices.Contains(host.Spec.Roles, hostsv1.RoleControlPlane)
			all[zone] = clusterv1.FailureDomainSpec{ControlPlane: all[zone].ControlPlane || suits}
		}
	}
	return all
}

func (c *Controller) ofHost(ctx context.Context, obj client.Object) []reconcile.Request {
	return watch.Requests(ctx, c.Client, &hostsv1.HostClusterList{}, client.InNamespace(obj.GetNamespace()))
}
