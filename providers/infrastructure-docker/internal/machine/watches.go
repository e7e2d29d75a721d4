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
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/node"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// byHostname is the index of machines by the name of their Node.
const byHostname = "status.addresses.hostname"

func indexes(of kinds.Set) []step.Index {
	return []step.Index{{Object: of.NewMachine(), Field: byHostname, Values: func(obj client.Object) []string {
		m, ok := of.MachineOf(obj)
		if !ok {
			return nil
		}
		return hostnames(m)
	}}}
}

func hostnames(m kinds.Machine) []string {
	for _, a := range *m.Addresses {
		if a.Type == clusterv1.MachineHostName {
			return []string{a.Address}
		}
	}
	return nil
}

// ofPool returns the machines of a MachinePool that may wait for its bootstrap data.
func (c *Controller) ofPool(ctx context.Context, obj client.Object) []reconcile.Request {
	return c.requestsFor(ctx, unready, client.InNamespace(obj.GetNamespace()),
		client.MatchingLabels{clusterv1.MachinePoolNameLabel: naming.LabelValue(obj.GetName())})
}

func (c *Controller) ofCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return watch.Requests(ctx, c.Client, c.kinds.Machines(), inCluster(client.ObjectKeyFromObject(obj))...)
}

func inCluster(cluster types.NamespacedName) []client.ListOption {
	return []client.ListOption{client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}}
}

// all returns all machines, after events of containers may have been lost. The container runtime may have been unavailable, so
// what failed is attempted again.
func (c *Controller) all(ctx context.Context) []reconcile.Request {
	c.jobs.RetryAll()
	return watch.Requests(ctx, c.Client, c.kinds.Machines())
}

// named returns the machines whose container has a name, which an earlier version created. They have a provider ID.
func (c *Controller) named(ctx context.Context, cluster, container string) []reconcile.Request {
	has := func(m kinds.Machine) bool {
		return *m.ProviderID != "" && node.Machine{Object: m, Cluster: cluster}.Container() == container
	}
	return c.requestsFor(ctx, has, client.MatchingLabels{clusterv1.ClusterNameLabel: cluster})
}

// joining returns the machines of a workload cluster that wait for its API server.
func (c *Controller) joining(ctx context.Context, cluster types.NamespacedName) []reconcile.Request {
	return c.requestsFor(ctx, unready, inCluster(cluster)...)
}

// requestsFor returns the machines for which matters returns true.
func (c *Controller) requestsFor(ctx context.Context, matters func(kinds.Machine) bool, which ...client.ListOption) []reconcile.Request {
	return watch.RequestsFor(ctx, c.Client, c.kinds.Machines(), func(obj client.Object) bool {
		m, ok := c.kinds.MachineOf(obj)
		return ok && matters(m)
	}, which...)
}

func unready(m kinds.Machine) bool { return !isProvisioned(m) }

func isProvisioned(m kinds.Machine) bool { return ptr.Deref(m.Initialization.Provisioned, false) }

// ofNode returns the machine of a Node, if it waits for it.
func (c *Controller) ofNode(ctx context.Context, cluster types.NamespacedName, obj client.Object) []reconcile.Request {
	return c.requestsFor(ctx, unready,
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
