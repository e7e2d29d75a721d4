package v1beta1

import (
	"cmp"
	"net"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// GetConditions returns the conditions of the Cluster.
func (c *Cluster) GetConditions() Conditions { return c.Status.Conditions }

// SetConditions replaces the conditions of the Cluster.
func (c *Cluster) SetConditions(conditions Conditions) { c.Status.Conditions = conditions }

// GetV1Beta2Conditions returns the conditions that v1beta2 shows.
func (c *Cluster) GetV1Beta2Conditions() []metav1.Condition {
	if c.Status.V1Beta2 == nil {
		return nil
	}
	return c.Status.V1Beta2.Conditions
}

// SetV1Beta2Conditions replaces the conditions that v1beta2 shows.
func (c *Cluster) SetV1Beta2Conditions(conditions []metav1.Condition) {
	if c.Status.V1Beta2 == nil {
		c.Status.V1Beta2 = &ClusterV1Beta2Status{}
	}
	c.Status.V1Beta2.Conditions = conditions
}

// GetClassKey returns namespace and name of the ClusterClass that the Cluster is an instance of, and the zero key when
// it has no topology.
func (c *Cluster) GetClassKey() types.NamespacedName {
	if c.Spec.Topology == nil {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: cmp.Or(c.Spec.Topology.ClassNamespace, c.Namespace), Name: c.Spec.Topology.Class}
}

// ClusterIPFamily is the IP family of a cluster.
type ClusterIPFamily = clusterv1beta2.ClusterIPFamily

const (
	// InvalidIPFamily is returned with an error if the family cannot be determined.
	InvalidIPFamily = clusterv1beta2.InvalidIPFamily
	// IPv4IPFamily is IPv4 alone.
	IPv4IPFamily = clusterv1beta2.IPv4IPFamily
	// IPv6IPFamily is IPv6 alone.
	IPv6IPFamily = clusterv1beta2.IPv6IPFamily
	// DualStackIPFamily is IPv4 and IPv6 together.
	DualStackIPFamily = clusterv1beta2.DualStackIPFamily
)

// GetIPFamily derives the IP family from the Pod and Service ranges. Without any range it is IPv4. If one of the two
// lists is empty, the other decides. It is an error when a range does not parse, a list has more than two ranges, or
// the lists differ, except that dual-stack Pods allow Services of a single family.
func (c *Cluster) GetIPFamily() (ClusterIPFamily, error) {
	var pods, services []string
	if n := c.Spec.ClusterNetwork; n != nil {
		if n.Pods != nil {
			pods = n.Pods.CIDRBlocks
		}
		if n.Services != nil {
			services = n.Services.CIDRBlocks
		}
	}
	return clusterv1beta2.IPFamilyOf(pods, services)
}

// IsZero is true when neither host nor port is set.
func (e APIEndpoint) IsZero() bool { return e.Host == "" && e.Port == 0 }

// IsValid is true when both host and port are set.
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
