package machine

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/node"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// byHostname is the index of DockerMachines by the name of their Node.
const byHostname = "status.addresses.hostname"

func indexes() []step.Index {
	return []step.Index{{Object: &dockerv1.DockerMachine{}, Field: byHostname, Values: hostnames}}
}

func hostnames(obj client.Object) []string {
	m, ok := obj.(*dockerv1.DockerMachine)
	if !ok {
		return nil
	}
	for _, a := range m.Status.Addresses {
		if a.Type == clusterv1.MachineHostName {
			return []string{a.Address}
		}
	}
	return nil
}

// ofPool returns the machines of a MachinePool that may wait for its bootstrap data.
func (c *Controller) ofPool(ctx context.Context, obj client.Object) []reconcile.Request {
	return watch.RequestsFor(ctx, c.Client, &dockerv1.DockerMachineList{}, unready, client.InNamespace(obj.GetNamespace()),
		client.MatchingLabels{clusterv1.MachinePoolNameLabel: naming.LabelValue(obj.GetName())})
}

func (c *Controller) ofCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return watch.Requests(ctx, c.Client, &dockerv1.DockerMachineList{}, inCluster(client.ObjectKeyFromObject(obj))...)
}

func inCluster(cluster types.NamespacedName) []client.ListOption {
	return []client.ListOption{client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}}
}

// all returns all DockerMachines, after events of containers may have been lost. The container runtime may have been unavailable, so
// what failed is attempted again.
func (c *Controller) all(ctx context.Context) []reconcile.Request {
	c.jobs.RetryAll()
	return watch.Requests(ctx, c.Client, &dockerv1.DockerMachineList{})
}

// named returns the DockerMachines whose container has a name, which an earlier version created. They have a provider ID.
func (c *Controller) named(ctx context.Context, cluster, container string) []reconcile.Request {
	has := func(m *dockerv1.DockerMachine) bool {
		return m.Spec.ProviderID != "" && node.Machine{Object: m, Cluster: cluster}.Container() == container
	}
	return watch.RequestsFor(ctx, c.Client, &dockerv1.DockerMachineList{}, has, client.MatchingLabels{clusterv1.ClusterNameLabel: cluster})
}

// joining returns the machines of a workload cluster that wait for its API server.
func (c *Controller) joining(ctx context.Context, cluster types.NamespacedName) []reconcile.Request {
	return watch.RequestsFor(ctx, c.Client, &dockerv1.DockerMachineList{}, unready, inCluster(cluster)...)
}

func unready(m *dockerv1.DockerMachine) bool { return !isProvisioned(m) }

func isProvisioned(m *dockerv1.DockerMachine) bool {
	return ptr.Deref(m.Status.Initialization.Provisioned, false)
}

// ofNode returns the machine of a Node, if it waits for it.
func (c *Controller) ofNode(ctx context.Context, cluster types.NamespacedName, obj client.Object) []reconcile.Request {
	return watch.RequestsFor(ctx, c.Client, &dockerv1.DockerMachineList{}, unready,
		append(inCluster(cluster), client.MatchingFields{byHostname: obj.GetName()})...)
}

// nodeChanged reports whether what the controller writes to Nodes changed. Heartbeats of kubelets do not count.
func nodeChanged(before, after client.Object) bool {
	a, ok := before.(*corev1.Node)
	if !ok {
		return false
	}
	b, ok := after.(*corev1.Node)
	return ok && (a.Spec.ProviderID != b.Spec.ProviderID || !equality.Semantic.DeepEqual(a.Spec.Taints, b.Spec.Taints))
}
