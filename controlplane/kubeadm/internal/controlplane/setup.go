package controlplane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/external"
	"sigs.k8s.io/cluster-api/provider/pki"
	"sigs.k8s.io/cluster-api/provider/remote"
	"sigs.k8s.io/cluster-api/provider/step"
	"sigs.k8s.io/cluster-api/provider/watchfilter"
)

// Connections makes events of workload clusters into requests; remote.Clusters does.
type Connections interface {
	Source(events remote.Events) source.Source
}

// Options configure the controller.
type Options struct {
	// Secrets reads the Secrets of clusters from the cache, where one that is missing costs no request: a SecretReader.
	Secrets client.Reader
	// Workloads connects to workload clusters.
	Workloads Workloads
	// Connections tells of workload clusters that come and go, and of what happens in them.
	Connections Connections
	// Filter selects the objects that are this manager's.
	Filter watchfilter.Filter
	// MachinePools says that the kind is in use.
	MachinePools bool
	// Keys generates the keys of certificates; the manager runs it.
	Keys *pki.Keys
	// Workers is how many control planes are reconciled at a time.
	Workers int
}

// conditions are what Ready sums up.
func conditions() condition.Kind {
	return condition.Kind{Ready: []clusterv1.ConditionType{
		controlplanev1.MachinesCreatedCondition,
		controlplanev1.MachinesSpecUpToDateCondition,
		controlplanev1.ResizedCondition,
		controlplanev1.MachinesReadyCondition,
		controlplanev1.AvailableCondition,
		controlplanev1.CertificatesAvailableCondition,
	}}
}

// progress: a new control plane has its first status when it is initialized, if that is soon. Selector and counters, which
// topologies and scaling read, may wait with the first status alone: until then nobody has seen any, and whoever reads them
// has to expect that. From then on each change of them is written at once.
func progress() *step.Progress {
	return &step.Progress{
		First:     []string{"selector", "replicas", "updatedReplicas", "unavailableReplicas"},
		FirstTrue: []clusterv1.ConditionType{controlplanev1.MachinesCreatedCondition, controlplanev1.CertificatesAvailableCondition},
	}
}

// Setup adds the controller to the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := index(ctx, mgr, o.MachinePools); err != nil {
		return err
	}
	outside := step.From(mgr, "kubeadm-control-plane-controller", o.Filter)
	c := &Controller{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Secrets: o.Secrets, Workloads: o.Workloads,
		External:     external.Reader{Client: mgr.GetClient(), Versions: contract.APIVersions{Reader: mgr.GetClient()}},
		MachinePools: o.MachinePools, Clock: outside.Clock, Keys: o.Keys,
	}
	runner := c.Runner(outside)
	w := watches{reader: mgr.GetClient()}
	b := ctrl.NewControllerManagedBy(mgr).Named("kubeadmcontrolplane").
		WithOptions(step.Options(o.Workers)).
		For(&controlplanev1.KubeadmControlPlane{}, builder.WithPredicates(o.Filter.Predicate())).
		Owns(&clusterv1.Machine{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(w.ofCluster), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(w.ofMachine), builder.WithPredicates(watchfilter.Deleted())).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(w.ofAuthority), builder.WithPredicates(watchfilter.Updated(replaced))).
		WatchesRawSource(o.Connections.Source(w.remote()))
	if o.MachinePools {
		b = b.Watches(&clusterv1.MachinePool{}, handler.EnqueueRequestsFromMapFunc(w.ofPool), builder.WithPredicates(watchfilter.Deleted()))
	}
	if err := b.Complete(runner); err != nil {
		return fmt.Errorf("adding the KubeadmControlPlane controller: %w", err)
	}
	return setupUnattended(mgr, o)
}

// Runner is what controller-runtime calls.
func (c *Controller) Runner(outside step.Outside) *step.Runner[*controlplanev1.KubeadmControlPlane] {
	return &step.Runner[*controlplanev1.KubeadmControlPlane]{
		Outside:    outside,
		New:        func() *controlplanev1.KubeadmControlPlane { return &controlplanev1.KubeadmControlPlane{} },
		Conditions: conditions(),
		Paused: func(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) (bool, error) {
			cluster, err := OwnerCluster(ctx, c.Client, kcp)
			return cluster != nil && cluster.Spec.Paused, err
		},
		Do:       c.Reconcile,
		Progress: progress(),
		Observed: func(kcp *controlplanev1.KubeadmControlPlane, generation int64) {
			if kcp.Status.Selector != "" { // before there is anything to report, this alone is not worth a write
				kcp.Status.ObservedGeneration = generation
			}
		},
	}
}

// index lets Machines and MachinePools be found by their Cluster.
func index(ctx context.Context, mgr ctrl.Manager, pools bool) error {
	indexer := mgr.GetFieldIndexer()
	if err := indexer.IndexField(ctx, &clusterv1.Machine{}, ClusterIndex, ByCluster); err != nil {
		return fmt.Errorf("indexing Machines: %w", err)
	}
	if !pools {
		return nil
	}
	if err := indexer.IndexField(ctx, &clusterv1.MachinePool{}, ClusterIndex, ByCluster); err != nil {
		return fmt.Errorf("indexing MachinePools: %w", err)
	}
	return nil
}

// ByCluster is the index ClusterIndex.
func ByCluster(obj client.Object) []string {
	switch o := obj.(type) {
	case *clusterv1.Machine:
		return []string{o.Spec.ClusterName}
	case *clusterv1.MachinePool:
		return []string{o.Spec.ClusterName}
	}
	return nil
}
