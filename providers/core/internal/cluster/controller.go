package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	// Recent is shared by all controllers of the manager. If nil, every confirmation reads from the API server.
	Recent *step.Recent
	// LifecycleHooks is set if runtime extensions are called. Then the deletion of a Cluster with a topology begins when they have
	// allowed it.
	LifecycleHooks bool
	// Forget is called for Clusters that have been deleted, to close the connections to them.
	Forget func(cluster types.NamespacedName)
	// Clusters connects to workload clusters. Nil: the connections are not reported.
	Clusters *remote.Clusters
	// Classes reads ClusterClasses, also of namespaces that the manager does not watch. Nil: the manager's client does.
	Classes client.Reader
	// ConnectionGrace is how long a connection may be down before the Cluster reports that. Zero: 50 seconds.
	ConnectionGrace time.Duration
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	kind := clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind)
	c := &Controller{Clients: step.ClientsOf(mgr, "cluster-controller", o.Filter), forget: o.Forget, hooks: o.LifecycleHooks}
	c.Recent, c.connectionGrace, c.classes = o.Recent, o.ConnectionGrace, o.Classes
	if c.classes == nil {
		c.classes = c.Client
	}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	if o.Clusters != nil {
		c.connection = connections(o.Clusters)
		declared.Watches = append(declared.Watches, step.From(o.Clusters.Source(remote.Events{Connection: itself})))
	}
	built, err := declared.Add(ctx, mgr, c.Clients)
	if err != nil {
		return err
	}
	c.follow = &reference.Follower{
		Client:  c.Client,
		Live:    c.Live,
		Reader:  external.Reader{Client: c.Client, Versions: contract.APIVersions{Reader: c.Client}},
		Watcher: external.NewWatcher(built, mgr.GetCache()),
		Kind:    kind, Referrers: &clusterv1.ClusterList{},
	}
	return nil
}

// burst is how long a reconcile waits for further changes of a Cluster's objects, which only conditions and counters depend on, and settle
// how long a write waits for more of them.
const burst, settle = 2 * time.Second, time.Second

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*clusterv1.Cluster, *scope] {
	return step.Controller[*clusterv1.Cluster, *scope]{
		Name: "cluster",
		New:  func() *clusterv1.Cluster { return &clusterv1.Cluster{} },
		Watches: []step.Watch{
			step.Mapped(&clusterv1.Machine{}, byLabel, machineChanges()),
			step.Mapped(&clusterv1.MachineDeployment{}, byLabel, watch.Deleted()),
			step.Mapped(&clusterv1.MachineSet{}, byLabel, watch.Deleted()),
			step.Mapped(&clusterv1.MachinePool{}, byLabel, watch.Deleted()),
			step.Mapped(&corev1.Secret{}, byLabel, caCreated()),
			step.Settled(&clusterv1.Machine{}, burst, byLabel, reported(machineReports)),
			step.Settled(&clusterv1.MachineDeployment{}, burst, byLabel, reported(deploymentReports)),
			step.Settled(&clusterv1.MachineSet{}, burst, byLabel, predicate.NewPredicateFuncs(isAlone), reported(setReports)),
			step.Settled(&clusterv1.MachinePool{}, burst, byLabel, reported(poolReports)),
		},
		Events:  predicate.NewPredicateFuncs(isStarted),
		Indexes: []step.Index{{Object: &clusterv1.Cluster{}, Field: reference.Index, Values: references}},
		Paused: func(_ context.Context, cluster *clusterv1.Cluster) (bool, error) {
			return ptr.Deref(cluster.Spec.Paused, false), nil
		},
		Scope: func(_ context.Context, cluster *clusterv1.Cluster) (*scope, error) {
			return &scope{Cluster: cluster, before: cluster.Status.GetTypedPhase()}, nil
		},
		Steps: []step.Step[*scope]{
			step.Do("finalizer", c.finalizer),
			step.All(
				step.Do("infrastructure", reference.Reported(c.infrastructure)).Sets(clusterv1.InfrastructureReadyV1Beta1Condition),
				step.Do("control-plane", reference.Reported(c.controlPlane)).Sets(clusterv1.ControlPlaneReadyV1Beta1Condition),
				step.Do("initialized", c.initialized).Sets(clusterv1.ControlPlaneInitializedV1Beta1Condition),
				step.Do("kubeconfig", c.kubeconfig),
			),
		},
		Deletion: []step.Step[*scope]{
			step.Do("held", c.held),
			step.Do("delete-children", c.deleteChildren),
			step.Do("delete-control-plane", c.deleteControlPlane),
			step.Do("delete-infrastructure", c.deleteInfrastructure),
			step.Do("finish", c.finish),
		},
		Report:      []step.Step[*scope]{step.Do("phase", phase), step.Do("gather", c.gather), step.Do("counters", c.counters)},
		Reports:     reports,
		Settle:      step.Settle{For: settle, Conditions: []string{clusterv1.AvailableCondition}, First: true},
		WhilePaused: whilePaused,
		Conditions:  conditions(),
		Observed:    func(cluster *clusterv1.Cluster, g int64) { cluster.Status.ObservedGeneration = g },
		Progress:    progress(),
	}
}

// conditions declares the conditions that a Cluster's Ready summarizes.
func conditions() condition.Kind {
	return condition.Kind{Ready: []clusterv1.ConditionType{
		clusterv1.ControlPlaneReadyV1Beta1Condition, clusterv1.InfrastructureReadyV1Beta1Condition,
	}}
}

// progress delays the first write of the phase: a Cluster whose infrastructure is ready at once is never Provisioning.
func progress() *step.Progress { return &step.Progress{First: []string{"phase"}} }
