package journey

import (
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// ClusterBuilder builds Clusters of a class with one MachineDeployment, md-0.
type ClusterBuilder struct{ cluster *clusterv1.Cluster }

// NewCluster returns a builder for a Cluster with one control plane Machine, no workers, and version v1.30.5.
func NewCluster(name, class string) *ClusterBuilder {
	cidr := func(block string) *clusterv1.NetworkRanges {
		return &clusterv1.NetworkRanges{CIDRBlocks: []string{block}}
	}
	return &ClusterBuilder{&clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: clusterv1.ClusterSpec{
			ClusterNetwork: &clusterv1.ClusterNetwork{Services: cidr("10.128.0.0/12"), Pods: cidr("192.168.0.0/16"), ServiceDomain: "cluster.local"},
			Topology: &clusterv1.Topology{
				Class: class, Version: "v1.30.5",
				ControlPlane: clusterv1.ControlPlaneTopology{Replicas: ptr.To[int32](1)},
				Workers: &clusterv1.WorkersTopology{MachineDeployments: []clusterv1.MachineDeploymentTopology{
					{Class: "default-worker", Name: "md-0", Replicas: ptr.To[int32](0)},
				}},
			},
		},
	}}
}

// Version sets the Kubernetes version.
func (b *ClusterBuilder) Version(v string) *ClusterBuilder {
	b.cluster.Spec.Topology.Version = v
	return b
}

// ControlPlanes sets the number of control plane Machines.
func (b *ClusterBuilder) ControlPlanes(n int32) *ClusterBuilder {
	SetControlPlanes(n)(b.cluster)
	return b
}

// Workers sets the number of workers.
func (b *ClusterBuilder) Workers(n int32) *ClusterBuilder {
	SetWorkers(n)(b.cluster)
	return b
}

// Variable sets a variable of the class.
func (b *ClusterBuilder) Variable(name string, value any) *ClusterBuilder {
	setVariable(name, value)(b.cluster)
	return b
}

// Build returns the Cluster.
func (b *ClusterBuilder) Build() *clusterv1.Cluster { return b.cluster }

// The following functions change Clusters, for Subject.Change.

// SetControlPlanes sets the number of control plane Machines.
func SetControlPlanes(n int32) func(*clusterv1.Cluster) {
	return func(c *clusterv1.Cluster) { c.Spec.Topology.ControlPlane.Replicas = &n }
}

// SetWorkers sets the number of workers.
func SetWorkers(n int32) func(*clusterv1.Cluster) {
	return func(c *clusterv1.Cluster) { c.Spec.Topology.Workers.MachineDeployments[0].Replicas = &n }
}

// SetVersion sets the Kubernetes version.
func SetVersion(v string) func(*clusterv1.Cluster) {
	return func(c *clusterv1.Cluster) { c.Spec.Topology.Version = v }
}

func setClass(name string) func(*clusterv1.Cluster) {
	return func(c *clusterv1.Cluster) { c.Spec.Topology.Class = name }
}

func setPaused(paused bool) func(*clusterv1.Cluster) {
	return func(c *clusterv1.Cluster) { c.Spec.Paused = paused }
}

// setVariable sets a variable of the class. The value must be representable in JSON.
func setVariable(name string, value any) func(*clusterv1.Cluster) {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err) // The test is wrong.
	}
	variable := clusterv1.ClusterVariable{Name: name, Value: apiextensionsv1.JSON{Raw: raw}}
	return func(c *clusterv1.Cluster) {
		for i, v := range c.Spec.Topology.Variables {
			if v.Name == name {
				c.Spec.Topology.Variables[i] = variable
				return
			}
		}
		c.Spec.Topology.Variables = append(c.Spec.Topology.Variables, variable)
	}
}
