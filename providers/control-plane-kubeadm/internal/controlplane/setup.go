package controlplane

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/machines"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Connections is the source of requests for events in workload clusters. remote.Clusters implements it.
type Connections interface {
	Source(events remote.Events) source.Source
}

// Options configure the controller.
type Options struct {
	// Secrets reads Secrets of clusters: a credentials.SecretReader.
	Secrets client.Reader
	// Workloads connects to workload clusters.
	Workloads connection.Workloads
	// Connections is the source of events of workload clusters.
	Connections Connections
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	// MachinePools is true if the kind MachinePool is enabled.
	MachinePools bool
	// Keys generates keys. The manager runs it.
	Keys *pki.Keys
	// Workers is the number of control planes that are reconciled at the same time.
	Workers int
}

// Setup adds the controller to the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	outside := step.OutsideOf(mgr, "kubeadm-control-plane-controller", o.Filter)
	outside.Client = client.WithFieldOwner(outside.Client, machines.FieldManager)
	externals := external.Reader{Client: mgr.GetClient(), Versions: contract.APIVersions{Reader: mgr.GetClient()}}
	c := New(outside, externals, o.Secrets, o.Workloads, o.Keys)
	c.MachinePools = o.MachinePools
	w := watches{reader: mgr.GetClient()}
	declared := c.declared()
	declared.Concurrency = o.Workers
	declared.Events = predicate.Funcs{} // resyncs too
	declared.Indexes = []step.Index{{Object: &clusterv1.Machine{}, Field: snapshot.ClusterIndex, Values: snapshot.ByCluster}}
	declared.Watches = []step.Watch{
		step.Owned(&clusterv1.Machine{}),
		step.Mapped(&clusterv1.Cluster{}, w.ofCluster),
		step.Mapped(&clusterv1.Machine{}, w.ofMachine, watch.Deleted()),
		step.Mapped(&corev1.Secret{}, w.ofClusterCA, watch.Updated(dataChanged)),
		step.From(o.Connections.Source(w.remote())),
	}
	if o.MachinePools {
		declared.Indexes = append(declared.Indexes, step.Index{Object: &clusterv1.MachinePool{}, Field: snapshot.ClusterIndex, Values: snapshot.ByCluster})
		declared.Watches = append(declared.Watches, step.Mapped(&clusterv1.MachinePool{}, w.ofPool, watch.Deleted()))
	}
	if err := step.Add(ctx, mgr, outside, declared); err != nil {
		return err
	}
	return setupOrphanedMachines(ctx, mgr, step.OutsideOf(mgr, "kubeadm-control-plane-controller", o.Filter), o.Workers)
}
