package cluster

import (
	"context"
	"fmt"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/identity"
)

// backends returns the control plane machines that have an address, by the names of their containers. Those that are being
// deleted are left out if there are others.
func (c *Controller) backends(ctx context.Context, s *scope) (map[string]*dockerv1.DockerMachine, error) {
	list := &dockerv1.DockerMachineList{}
	err := c.Client.List(ctx, list, client.InNamespace(s.obj.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: s.cluster.Name})
	if err != nil {
		return nil, fmt.Errorf("listing DockerMachines: %w", err)
	}
	staying, leaving := map[string]*dockerv1.DockerMachine{}, map[string]*dockerv1.DockerMachine{}
	for i := range list.Items {
		m := &list.Items[i]
		if addressOf(m, isIPv6(s.cluster)) == "" {
			continue
		}
		controlPlane, err := c.isControlPlane(ctx, m)
		if err != nil {
			return nil, err
		}
		switch name := identity.MachineContainer(s.cluster.Name, m.Name); {
		case !controlPlane:
		case m.DeletionTimestamp.IsZero():
			staying[name] = m
		default:
			leaving[name] = m
		}
	}
	if len(staying) == 0 {
		return leaving, nil
	}
	return staying, nil
}

// isControlPlane reports whether a machine is one of a control plane, by the label of its Machine. The control plane provider
// also labels the DockerMachine itself.
func (c *Controller) isControlPlane(ctx context.Context, m *dockerv1.DockerMachine) (bool, error) {
	if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; ok {
		return true, nil
	}
	owner := metav1.GetControllerOf(m)
	if owner == nil || owner.Kind != clusterv1.MachineKind {
		return false, nil
	}
	machine := &clusterv1.Machine{}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: owner.Name}, machine); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return false, nil
		}
		return false, fmt.Errorf("reading Machine %s: %w", owner.Name, err)
	}
	_, ok := machine.Labels[clusterv1.MachineControlPlaneLabel]
	return ok, nil
}

// addressOf returns the internal address of a machine, of the preferred IP family if it has one; empty if it has none.
func addressOf(m *dockerv1.DockerMachine, ipv6 bool) string {
	other := ""
	for _, a := range m.Status.Addresses {
		ip, err := netip.ParseAddr(a.Address)
		if a.Type != clusterv1.MachineInternalIP || err != nil {
			continue
		}
		if ip.Is6() == ipv6 {
			return a.Address
		}
		if other == "" {
			other = a.Address
		}
	}
	return other
}

// isIPv6 reports whether the networks of a Cluster are all IPv6.
func isIPv6(cluster *clusterv1.Cluster) bool {
	network := cluster.Spec.ClusterNetwork
	if network == nil {
		return false
	}
	found := false
	for _, ranges := range []*clusterv1.NetworkRanges{network.Pods, network.Services} {
		if ranges == nil {
			continue
		}
		for _, cidr := range ranges.CIDRBlocks {
			prefix, err := netip.ParsePrefix(cidr)
			if err != nil || !prefix.Addr().Is6() {
				return false
			}
			found = true
		}
	}
	return found
}
