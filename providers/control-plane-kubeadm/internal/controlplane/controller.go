package controlplane

import (
	"cmp"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/machines"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/condition"
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
	// Concurrency is how many control planes are reconciled at the same time.
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	// Secrets reads Secrets of clusters: a credentials.SecretReader.
	Secrets client.Reader
	// Workloads connects to workload clusters.
	Workloads connection.Workloads
	// Connections is the source of events of workload clusters.
	Connections Connections
	// MachinePools is true if the kind MachinePool is enabled.
	MachinePools bool
	// WatchesMachinePools is true if the manager may watch them. Otherwise they are read live.
	WatchesMachinePools bool
	// ConditionsGrace is how long conditions keep what was known of a workload cluster that is unreachable. Zero: 5 minutes.
	ConditionsGrace time.Duration
	// JoinTimeout is how long kubeadm may take to join etcd. Zero: membership.DefaultJoinTimeout.
	JoinTimeout time.Duration
	// Keys generates keys. The manager runs it.
	Keys *pki.Keys
	// NamedAfterTemplates names new infrastructure machines after their template, as before v1.7, instead of their Machine.
	NamedAfterTemplates bool
	// Metrics is the registry of metrics about CAs. Nil: there are none.
	Metrics prometheus.Registerer
	// Updater calls the extension that updates Machines in place; nil without the feature gate InPlaceUpdates.
	Updater inplace.Caller
}

// Setup adds the controller, and that of orphaned Machines, to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	clients := step.ClientsOf(mgr, "kubeadm-control-plane-controller", o.Filter)
	clients.Client = client.WithFieldOwner(clients.Client, machines.FieldManager)
	externals := external.Reader{Client: mgr.GetClient(), Versions: contract.APIVersions{Reader: mgr.GetClient()}}
	c := newController(clients, externals, o.Secrets, o.Workloads, o.Keys)
	c.machines.NamedAfterTemplates = o.NamedAfterTemplates
	c.machinePools, c.watchesPools = o.MachinePools, o.WatchesMachinePools
	c.scaler.Extensions = o.Updater
	c.connector.Grace = o.ConditionsGrace
	c.members.JoinTimeout = cmp.Or(o.JoinTimeout, membership.DefaultJoinTimeout)
	if o.Metrics != nil {
		_ = o.Metrics.Register(c.credentials) // Components in one process have no metrics endpoint; the first one is registered.
	}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	declared.Watches = append(declared.Watches, step.From(o.Connections.Source(c.workloadEvents())))
	if err := step.Add(ctx, mgr, clients, declared); err != nil {
		return err
	}
	return setupOrphanedMachines(ctx, mgr, step.ClientsOf(mgr, "kubeadm-control-plane-controller", o.Filter), o.Concurrency)
}

// declared declares the controller.
func (c *Controller) declared() step.Controller[*controlplanev1.KubeadmControlPlane, *scope] {
	return step.Controller[*controlplanev1.KubeadmControlPlane, *scope]{
		Name:    "kubeadmcontrolplane",
		New:     func() *controlplanev1.KubeadmControlPlane { return &controlplanev1.KubeadmControlPlane{} },
		Events:  predicate.Funcs{}, // resyncs too
		Indexes: c.indexes(),
		Watches: c.watches(),
		Paused: func(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) (bool, error) {
			cluster, err := snapshot.OwnerCluster(ctx, c.Client, kcp)
			return cluster != nil && ptr.Deref(cluster.Spec.Paused, false), err
		},
		Scope: c.scope,
		Steps: []step.Step[*scope]{
			step.Do("cluster", hasCluster),
			step.Do("own", c.own),
			step.Do("infrastructure", infrastructure),
			step.Do("hold", hold),
			step.All(c.reconcileExisting(), c.prepare(), c.change()),
		},
		Deletion: []step.Step[*scope]{
			step.Do("cluster", hasCluster),
			step.Do("finalizer", hasFinalizer),
			step.Do("hold", unhold),
			step.When((*scope).hasWorkers, step.All(
				step.When((*scope).losesMembers,
					step.Do("connect", c.connect), step.Do("observe", observe), step.Do("pre-terminate", withBackoff(c.preTerminate))),
				step.Do("workers", waitForWorkers),
			)),
			step.Do("machines", c.deleteMachines),
			step.Do("release", c.release),
		},
		Report:     []step.Step[*scope]{step.Do("report", reportStatus)},
		Reports:    c.reports,
		Settle:     step.Settle{For: settle, Conditions: []string{clusterv1.AvailableCondition}, First: true},
		Conditions: conditions(),
		Progress:   progress(),
		Observed: func(kcp *controlplanev1.KubeadmControlPlane, generation int64) {
			if kcp.Status.Selector != "" { // Before there is a status, the generation alone is not worth a write.
				kcp.Status.ObservedGeneration = generation
			}
		},
	}
}

// reconcileExisting reconciles the Machines that exist. None of its steps depends on the success of another.
func (c *Controller) reconcileExisting() step.Step[*scope] {
	return step.All(
		unlessHeld(step.Do("complete", c.complete).Sets(controlplanev1.MachinesCreatedV1Beta1Condition)),
		unlessHeld(step.Do("propagate", c.propagate)),
		step.Do("connect", c.connect),
		step.Do("initialized", initialized).Sets(controlplanev1.AvailableV1Beta1Condition),
		unlessHeld(step.Do("stranded", stranded).Sets(controlplanev1.MachinesCreatedV1Beta1Condition)),
		step.Do("inspect", c.inspect),
		unlessHeld(step.Do("pre-terminate", withBackoff(c.preTerminate))),
		unlessHeld(step.Do("orphaned-members", withBackoff(c.orphanedMembers))),
	)
}

// prepare creates what new Machines need, and the first Machine if an operation restores the control plane.
func (c *Controller) prepare() step.Step[*scope] {
	return step.InOrder(
		step.Do("certificates", c.certificates).Sets(controlplanev1.CertificatesAvailableV1Beta1Condition),
		step.Do("endpoint", endpoint),
		step.Do("kubeconfig", c.kubeconfig),
		step.When((*scope).isHeld, step.Do("restore", c.restore).Sets(controlplanev1.MachinesCreatedV1Beta1Condition)),
		unlessHeld(step.Do("adopt", c.adopt)),
	)
}

// change changes the number of Machines, if prepare has completed, and then maintains the workload cluster. Without the step adopt, no
// Machine can be created, so an operation that holds the control plane prevents all of that.
func (c *Controller) change() step.Step[*scope] {
	return step.InOrder(
		step.When((*scope).machinesCanBeCreated,
			step.Do("remediate", withBackoff(c.remediate)),
			step.Do("plan", plan),
			step.Do("scale", withBackoff(c.scale)).Sets(controlplanev1.MachinesCreatedV1Beta1Condition),
		),
		unlessHeld(step.Do("maintain", withBackoff(c.maintain))),
	)
}

// settle is how long reports that users wait for are held back: Machines often change together.
const settle = time.Second

// conditions declares the conditions that Ready summarizes.
func conditions() condition.Kind {
	return condition.Kind{Ready: []clusterv1.ConditionType{
		controlplanev1.MachinesCreatedV1Beta1Condition,
		controlplanev1.MachinesSpecUpToDateV1Beta1Condition,
		controlplanev1.ResizedV1Beta1Condition,
		controlplanev1.MachinesReadyV1Beta1Condition,
		controlplanev1.AvailableV1Beta1Condition,
		controlplanev1.CertificatesAvailableV1Beta1Condition,
	}}
}

// progress declares which status writes may be delayed: the first one, until the control plane is initialized, if that is soon.
// Only in the first status, selector and counters may be delayed: topologies and autoscalers, which read them, must expect that
// they do not exist yet. Later changes of them are written immediately.
func progress() *step.Progress {
	return &step.Progress{
		First: []string{"selector", "replicas", "updatedReplicas", "unavailableReplicas", "versions"},
		FirstTrue: []clusterv1.ConditionType{
			controlplanev1.MachinesCreatedV1Beta1Condition, controlplanev1.CertificatesAvailableV1Beta1Condition,
		},
	}
}
