package v1beta2

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GetClassKey returns namespace and name of the ClusterClass that the Cluster is an instance of, and the zero key when
// it has no topology.
func (c *Cluster) GetClassKey() types.NamespacedName {
	if !c.Spec.Topology.IsDefined() {
		return types.NamespacedName{}
	}
	class := c.Spec.Topology.ClassRef
	return types.NamespacedName{Namespace: cmp.Or(class.Namespace, c.Namespace), Name: class.Name}
}

// ClusterIPFamily is the IP family of a cluster.
type ClusterIPFamily int

const (
	// InvalidIPFamily is returned with an error if the family cannot be determined.
	InvalidIPFamily ClusterIPFamily = iota
	// IPv4IPFamily is IPv4 alone.
	IPv4IPFamily
	// IPv6IPFamily is IPv6 alone.
	IPv6IPFamily
	// DualStackIPFamily is IPv4 and IPv6 together.
	DualStackIPFamily
)

// String returns the name of the family as used by templates and providers: IPv4, IPv6, DualStack, or InvalidIPFamily.
func (f ClusterIPFamily) String() string {
	switch f {
	case IPv4IPFamily:
		return "IPv4"
	case IPv6IPFamily:
		return "IPv6"
	case DualStackIPFamily:
		return "DualStack"
	default:
		return "InvalidIPFamily"
	}
}

// GetIPFamily derives the IP family from the Pod and Service ranges, as IPFamilyOf does.
func (c *Cluster) GetIPFamily() (ClusterIPFamily, error) {
	return IPFamilyOf(c.Spec.ClusterNetwork.Pods.CIDRBlocks, c.Spec.ClusterNetwork.Services.CIDRBlocks)
}

// IPFamilyOf derives the IP family from the Pod and Service ranges. Without any range it is IPv4. If one of the two
// lists is empty, the other decides. It is an error when a range does not parse, a list has more than two ranges, or
// the lists differ, except that dual-stack Pods allow Services of a single family.
func IPFamilyOf(pods, services []string) (ClusterIPFamily, error) {
	if len(pods) == 0 && len(services) == 0 {
		return IPv4IPFamily, nil
	}

	podsFamily, err := ipFamilyOf(pods)
	if err != nil {
		return InvalidIPFamily, fmt.Errorf("spec.clusterNetwork.pods: %w", err)
	}
	servicesFamily, err := ipFamilyOf(services)
	if err != nil {
		return InvalidIPFamily, fmt.Errorf("spec.clusterNetwork.services: %w", err)
	}
	switch {
	case len(services) == 0:
		return podsFamily, nil
	case len(pods) == 0:
		return servicesFamily, nil
	case podsFamily == DualStackIPFamily:
		return DualStackIPFamily, nil
	case podsFamily != servicesFamily:
		return InvalidIPFamily, fmt.Errorf(
			"spec.clusterNetwork: pods are %s but services are %s: use ranges of the same IP family in both",
			podsFamily, servicesFamily)
	}
	return podsFamily, nil
}

// ipFamilyOf returns InvalidIPFamily without an error for an empty list.
func ipFamilyOf(cidrs []string) (ClusterIPFamily, error) {
	if len(cidrs) > 2 {
		return InvalidIPFamily, fmt.Errorf("%d cidrBlocks, at most 2 are allowed", len(cidrs))
	}
	var v4, v6 bool
	for _, cidr := range cidrs {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			return InvalidIPFamily, fmt.Errorf("cidrBlocks: %w", err)
		}
		v4 = v4 || prefix.Addr().Is4()
		v6 = v6 || prefix.Addr().Is6()
	}
	switch {
	case v4 && v6:
		return DualStackIPFamily, nil
	case v4:
		return IPv4IPFamily, nil
	case v6:
		return IPv6IPFamily, nil
	}
	return InvalidIPFamily, nil
}

// IsZero reports whether neither host nor port is set.
func (e APIEndpoint) IsZero() bool { return e.Host == "" && e.Port == 0 }

// IsValid reports whether both host and port are set.
func (e APIEndpoint) IsValid() bool { return e.Host != "" && e.Port != 0 }

// String returns host:port, with an IPv6 host in brackets.
func (e APIEndpoint) String() string {
	return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
}

// String returns the ranges separated by commas, as in Kubernetes flags. A nil list gives the empty string.
func (n *NetworkRanges) String() string {
	if n == nil {
		return ""
	}
	return strings.Join(n.CIDRBlocks, ",")
}

// GetConditions returns the conditions of the Cluster.
func (c *Cluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions of the Cluster.
func (c *Cluster) SetConditions(conditions []metav1.Condition) { c.Status.Conditions = conditions }

// GetV1Beta1Status returns the status that only v1beta1 has.
func (c *Cluster) GetV1Beta1Status() ClusterV1Beta1DeprecatedStatus {
	if c.Status.Deprecated == nil || c.Status.Deprecated.V1Beta1 == nil {
		return ClusterV1Beta1DeprecatedStatus{}
	}
	return *c.Status.Deprecated.V1Beta1
}

// SetV1Beta1Status replaces the status that only v1beta1 has, including its conditions.
func (c *Cluster) SetV1Beta1Status(status ClusterV1Beta1DeprecatedStatus) {
	if c.Status.Deprecated == nil && equality.Semantic.DeepEqual(status, ClusterV1Beta1DeprecatedStatus{}) {
		return
	}
	c.Status.Deprecated = &ClusterDeprecatedStatus{V1Beta1: &status}
}

// GetV1Beta1Conditions returns the conditions that v1beta1 shows.
func (c *Cluster) GetV1Beta1Conditions() Conditions {
	if c.Status.Deprecated == nil || c.Status.Deprecated.V1Beta1 == nil {
		return nil
	}
	return c.Status.Deprecated.V1Beta1.Conditions
}

// SetV1Beta1Conditions replaces the conditions that v1beta1 shows.
func (c *Cluster) SetV1Beta1Conditions(conditions Conditions) {
	if len(conditions) == 0 && len(c.GetV1Beta1Conditions()) == 0 {
		return
	}
	if c.Status.Deprecated == nil {
		c.Status.Deprecated = &ClusterDeprecatedStatus{}
	}
	if c.Status.Deprecated.V1Beta1 == nil {
		c.Status.Deprecated.V1Beta1 = &ClusterV1Beta1DeprecatedStatus{}
	}
	c.Status.Deprecated.V1Beta1.Conditions = conditions
}
