package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	hostsv1alpha2 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

func (c *Controller) endpoint(ctx context.Context, obj *hostsv1alpha2.HostCluster) (step.Result, error) {
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
	obj.Status.Initialization.Provisioned = true
	return step.Done(), nil
}

// zones returns the failure domains of Hosts. Those with a Host for control planes are suitable for control planes.
func zones(hosts []hostsv1.Host) []clusterv1.FailureDomain {
	suit := map[string]bool{}
	for _, host := range hosts {
		if zone := host.Labels[hostsv1.ZoneLabel]; zone != "" {
			suits := len(host.Spec.Roles) == 0 || slices.Contains(host.Spec.Roles, hostsv1.RoleControlPlane)
			suit[zone] = suit[zone] || suits
		}
	}
	var all []clusterv1.FailureDomain
	for _, zone := range slices.Sorted(maps.Keys(suit)) {
		all = append(all, clusterv1.FailureDomain{Name: zone, ControlPlane: ptr.To(suit[zone])})
	}
	return all
}
