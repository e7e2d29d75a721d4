package cluster

import (
	"context"
	"fmt"
	"net/netip"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/ownership"
)

// backends returns the control plane machines that have an address, by the names of their containers, and those that leave
// because they or their Machines are being deleted. These remain backends only if there are no others. An API server leaves
// with the deletion of its Machine, and not only with that of its infrastructure machine: in between, the control plane provider
// removes its etcd member, and it can no longer serve requests.
func (c *Controller) backends(
	ctx context.Context, s *scope,
) (backends map[string]kinds.Machine, left []kinds.Machine, err error) {
	list := c.kinds.Machines()
	err = c.Client.List(ctx, list, client.InNamespace(s.obj.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: s.cluster.Name})
	if err != nil {
		return nil, nil, fmt.Errorf("listing %ss: %w", c.kinds.MachineKind, err)
	}
	staying, leaving := map[string]kinds.Machine{}, map[string]kinds.Machine{}
	for _, m := range c.kinds.MachineItems(list) {
		if addressOf(m, isIPv6(s.cluster)) == "" {
			continue
		}
		machine, err := ownership.MachineOf(ctx, c.Client, m.Object)
		if err != nil {
			return nil, nil, err
		}
		switch name := identity.MachineContainer(s.cluster.Name, m.Name); {
		case !isControlPlane(m, machine):
		case m.DeletionTimestamp.IsZero() && (machine == nil || machine.DeletionTimestamp.IsZero()):
			staying[name] = m
		default:
			leaving[name] = m
			left = append(left, m)
		}
	}
	if len(staying) == 0 {
		return leaving, nil, nil
	}
	return staying, left, nil
}

// isControlPlane reports whether a machine is one of a control plane, by the label of its Machine. The control plane provider
// also labels the infrastructure machine itself.
func isControlPlane(m kinds.Machine, machine *clusterv1.Machine) bool {
	_, labeled := m.Labels[clusterv1.MachineControlPlaneLabel]
	if !labeled && machine != nil {
		_, labeled = machine.Labels[clusterv1.MachineControlPlaneLabel]
	}
	return labeled
}

// addressOf returns the internal address of a machine, of the preferred IP family if it has one; empty if it has none.
func addressOf(m kinds.Machine, ipv6 bool) string {
	other := ""
	for _, a := range *m.Addresses {
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
	found := false
	for _, ranges := range []clusterv1.NetworkRanges{network.Pods, network.Services} {
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
