package core

import (
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func clusterUp(cluster *clusterv1beta1.Cluster) *clusterv1.Cluster {
	spec, s := cluster.Spec, cluster.Status
	hub := &clusterv1.Cluster{
		ObjectMeta: cluster.ObjectMeta,
		Spec: clusterv1.ClusterSpec{
			Paused:               optional(spec.Paused),
			ClusterNetwork:       networkUp(spec.ClusterNetwork),
			ControlPlaneEndpoint: clusterv1.APIEndpoint(spec.ControlPlaneEndpoint),
			ControlPlaneRef:      refUp(spec.ControlPlaneRef),
			InfrastructureRef:    refUp(spec.InfrastructureRef),
			Topology:             topologyUp(spec.Topology),
		},
		Status: clusterv1.ClusterStatus{
			Initialization: clusterv1.ClusterInitializationStatus{
				InfrastructureProvisioned: optional(s.InfrastructureReady), ControlPlaneInitialized: optional(s.ControlPlaneReady),
			},
			FailureDomains:     failureDomainsUp(s.FailureDomains),
			Phase:              s.Phase,
			ObservedGeneration: s.ObservedGeneration,
		},
	}
	if s.Conditions != nil || s.FailureReason != nil || s.FailureMessage != nil {
		hub.Status.Deprecated = &clusterv1.ClusterDeprecatedStatus{V1Beta1: &clusterv1.ClusterV1Beta1DeprecatedStatus{
			Conditions: conditionsUp(s.Conditions), FailureReason: text(s.FailureReason), FailureMessage: s.FailureMessage,
		}}
	}
	hub.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind))
	return hub
}

func (c Converter) clusterDown(cluster *clusterv1.Cluster) *clusterv1beta1.Cluster {
	spec, s := cluster.Spec, cluster.Status
	old := &clusterv1beta1.Cluster{
		ObjectMeta: cluster.ObjectMeta,
		Spec: clusterv1beta1.ClusterSpec{
			Paused:               ptr.Deref(spec.Paused, false),
			ClusterNetwork:       networkDown(spec.ClusterNetwork),
			ControlPlaneEndpoint: clusterv1beta1.APIEndpoint(spec.ControlPlaneEndpoint),
			ControlPlaneRef:      c.refDown(spec.ControlPlaneRef, cluster.Namespace),
			InfrastructureRef:    c.refDown(spec.InfrastructureRef, cluster.Namespace),
			Topology:             topologyDown(spec.Topology, cluster.Namespace),
		},
		Status: clusterv1beta1.ClusterStatus{
			InfrastructureReady: ptr.Deref(s.Initialization.InfrastructureProvisioned, false),
			ControlPlaneReady:   ptr.Deref(s.Initialization.ControlPlaneInitialized, false),
			FailureDomains:      failureDomainsDown(s.FailureDomains),
			Phase:               s.Phase,
			ObservedGeneration:  s.ObservedGeneration,
		},
	}
	if s.Deprecated != nil && s.Deprecated.V1Beta1 != nil {
		d := s.Deprecated.V1Beta1
		old.Status.Conditions = conditionsDown(d.Conditions)
		old.Status.FailureReason, old.Status.FailureMessage = failure[clusterv1beta1.ClusterStatusError](d.FailureReason), d.FailureMessage
	}
	old.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind(clusterv1beta1.ClusterKind))
	return old
}

func networkUp(n *clusterv1beta1.ClusterNetwork) clusterv1.ClusterNetwork {
	if n == nil {
		return clusterv1.ClusterNetwork{}
	}
	return clusterv1.ClusterNetwork{
		APIServerPort: ptr.Deref(n.APIServerPort, 0),
		Services:      clusterv1.NetworkRanges(ptr.Deref(n.Services, clusterv1beta1.NetworkRanges{})),
		Pods:          clusterv1.NetworkRanges(ptr.Deref(n.Pods, clusterv1beta1.NetworkRanges{})),
		ServiceDomain: n.ServiceDomain,
	}
}

func networkDown(n clusterv1.ClusterNetwork) *clusterv1beta1.ClusterNetwork {
	if !isSet(n) {
		return nil
	}
	return &clusterv1beta1.ClusterNetwork{
		APIServerPort: optional(n.APIServerPort),
		Services:      rangesDown(n.Services),
		Pods:          rangesDown(n.Pods),
		ServiceDomain: n.ServiceDomain,
	}
}

func rangesDown(r clusterv1.NetworkRanges) *clusterv1beta1.NetworkRanges {
	if len(r.CIDRBlocks) == 0 {
		return nil
	}
	return &clusterv1beta1.NetworkRanges{CIDRBlocks: r.CIDRBlocks}
}

// failureDomainsUp returns the failure domains sorted by name.
func failureDomainsUp(domains clusterv1beta1.FailureDomains) []clusterv1.FailureDomain {
	return each(slices.Sorted(maps.Keys(domains)), func(name string) clusterv1.FailureDomain {
		return clusterv1.FailureDomain{
			Name: name, ControlPlane: optional(domains[name].ControlPlane), Attributes: domains[name].Attributes,
		}
	})
}

func failureDomainsDown(domains []clusterv1.FailureDomain) clusterv1beta1.FailureDomains {
	if domains == nil {
		return nil
	}
	old := clusterv1beta1.FailureDomains{}
	for _, d := range domains {
		old[d.Name] = clusterv1beta1.FailureDomainSpec{ControlPlane: ptr.Deref(d.ControlPlane, false), Attributes: d.Attributes}
	}
	return old
}
