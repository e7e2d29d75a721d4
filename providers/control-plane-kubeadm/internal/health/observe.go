package health

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/quorum"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
)

// Workload is what Observe reads.
type Workload interface {
	// Nodes lists the Nodes of the control plane, from a cache.
	Nodes(ctx context.Context) ([]corev1.Node, error)
	// Pods lists the static Pods of the control plane, from a cache.
	Pods(ctx context.Context) ([]corev1.Pod, error)
	// Etcd queries the etcd members on these Nodes.
	Etcd(ctx context.Context, nodes []string) []quorum.Member
}

// Observation is the state of a control plane in its workload cluster. It is nil if the workload cluster was not observed.
type Observation struct {
	// Nodes by name.
	Nodes map[string]*corev1.Node
	// Pods by name.
	Pods map[string]*corev1.Pod
	// Etcd has the responses of the etcd members by Node, without those that were not queried.
	Etcd map[string]quorum.Member
}

// Observe reads Nodes and Pods from the cache, and queries the etcd members whose Pods are ready.
func Observe(ctx context.Context, cp *snapshot.ControlPlane, workload Workload) (*Observation, error) {
	nodes, err := workload.Nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing control plane Nodes: %w", err)
	}
	pods, err := workload.Pods(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing control plane Pods: %w", err)
	}
	o := &Observation{Nodes: map[string]*corev1.Node{}, Pods: map[string]*corev1.Pod{}, Etcd: map[string]quorum.Member{}}
	for i := range nodes {
		if len(nodes[i].Name) <= validation.DNS1123SubdomainMaxLength { // A hostile API server may serve other names.
			o.Nodes[nodes[i].Name] = &nodes[i]
		}
	}
	for i := range pods {
		o.Pods[pods[i].Name] = &pods[i]
	}
	if !cp.StackedEtcd() {
		return o, nil
	}
	responses := workload.Etcd(ctx, o.MembersToQuery(cp))
	if quorum.Disagree(responses) {
		// A member may have joined or left meanwhile, so that some did not know it yet. Now all do.
		responses = workload.Etcd(ctx, o.MembersToQuery(cp))
	}
	for _, member := range responses {
		o.Etcd[member.Node] = member
	}
	return o, nil
}

// MembersToQuery returns the Nodes whose etcd members can be expected to respond.
func (o *Observation) MembersToQuery(cp *snapshot.ControlPlane) []string {
	var names []string
	for _, m := range cp.Machines {
		node := o.Nodes[m.Node()]
		if node == nil || Unreachable(node) {
			continue
		}
		if pod := o.Pods["etcd-"+node.Name]; pod != nil && PodReady(pod) {
			names = append(names, node.Name)
		}
	}
	return names
}

// EtcdCluster returns the etcd cluster according to its members.
func (o *Observation) EtcdCluster() quorum.Cluster {
	responses := make([]quorum.Member, 0, len(o.Etcd))
	for _, response := range o.Etcd {
		responses = append(responses, response)
	}
	return quorum.Of(responses)
}

// MemberRemoved updates the Observation after a member was removed.
func (o *Observation) MemberRemoved(name string) {
	for node, response := range o.Etcd {
		response.Members = slices.DeleteFunc(slices.Clone(response.Members), func(n string) bool { return n == name })
		o.Etcd[node] = response
	}
}

// ReadyNodes returns the number of ready Nodes.
func (o *Observation) ReadyNodes() int32 {
	var n int32
	for _, node := range o.Nodes {
		if NodeReady(node) {
			n++
		}
	}
	return n
}
