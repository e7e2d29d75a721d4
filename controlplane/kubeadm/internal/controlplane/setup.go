package controlplane

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	"sigs.k8s.io/cluster-api/provider/watch"
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
	Filter watch.Filter
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
	outside := step.OutsideOf(mgr, "kubeadm-control-plane-controller", o.Filter)
	outside.Client = client.WithFieldOwner(outside.Client, FieldManager)
	c := &Controller{
		Outside: outside, Secrets: o.Secrets, Workloads: o.Workloads,
		External:     external.Reader{Client: mgr.GetClient(), Versions: contract.APIVersions{Reader: mgr.GetClient()}},
		MachinePools: o.MachinePools, Keys: o.Keys,
	}
	w := watches{reader: mgr.GetClient()}
	declared := c.declared()
	declared.Concurrency = o.Workers
	declared.Events = predicate.Funcs{} // resyncs too
	declared.Indexes = []step.Index{{Object: &clusterv1.Machine{}, Field: ClusterIndex, Values: ByCluster}}
	declared.Watches = []step.Watch{
		step.Owned(&clusterv1.Machine{}),
		step.Mapped(&clusterv1.Cluster{}, w.ofCluster),
		step.Mapped(&clusterv1.Machine{}, w.ofMachine, watch.Deleted()),
		step.Mapped(&corev1.Secret{}, w.ofAuthority, watch.Updated(replaced)),
		step.From(o.Connections.Source(w.remote())),
	}
	if o.MachinePools {
		declared.Indexes = append(declared.Indexes, step.Index{Object: &clusterv1.MachinePool{}, Field: ClusterIndex, Values: ByCluster})
		declared.Watches = append(declared.Watches, step.Mapped(&clusterv1.MachinePool{}, w.ofPool, watch.Deleted()))
	}
	if _, err := declared.Add(ctx, mgr, outside); err != nil {
		return err
	}
	return setupUnattended(ctx, mgr, o)
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
