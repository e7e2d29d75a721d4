package machine

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/drain"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
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
	// Clusters connects to workload clusters. It must cache Nodes, indexed by remote.NodeProviderID.
	Clusters *remote.Clusters
	// DrainTimeout is the timeout of one attempt to drain a Node.
	DrainTimeout time.Duration
	// ConnectionGrace is how long conditions keep what was known of a Node before the connection was lost. Zero: 5 minutes.
	ConnectionGrace time.Duration
	// Selection is what is copied to Nodes in addition.
	Selection Selection
	// Taints is the feature gate MachineTaintPropagation: taints of Machines are set on their Nodes.
	Taints bool
	// Updater calls the extension that updates Machines in place; nil without the feature gate InPlaceUpdates.
	Updater inplace.Caller
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{
		Clients: step.ClientsOf(mgr, "machine-controller", o.Filter), workloads: o.Clusters, drainer: drain.Evictor{Timeout: o.DrainTimeout},
		connectionGrace: o.ConnectionGrace, selection: o.Selection, taints: o.Taints, updater: o.Updater,
	}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	declared.Watches = append(declared.Watches, step.From(o.Clusters.Source(remote.Events{
		Connection: c.waitingFor,
		Watches:    []remote.Watch{{Object: &corev1.Node{}, Requests: c.ofNode, Changed: nodeChanged}},
	})))
	built, err := declared.Add(ctx, mgr, c.Clients)
	if err != nil {
		return err
	}
	c.follow = &reference.Follower{
		Client:  c.Client,
		Reader:  external.Reader{Client: c.Client, Versions: contract.APIVersions{Reader: c.Client}},
		Watcher: external.NewWatcher(built, mgr.GetCache()),
		Kind:    clusterv1.GroupVersion.WithKind(clusterv1.MachineKind), Referrers: &clusterv1.MachineList{},
	}
	return nil
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*clusterv1.Machine, *scope] {
	return step.Controller[*clusterv1.Machine, *scope]{
		Name: "machine",
		New:  func() *clusterv1.Machine { return &clusterv1.Machine{} },
		Watches: []step.Watch{
			step.Mapped(&clusterv1.Cluster{}, c.ofCluster, clusterEvents()),
			step.Mapped(&clusterv1.MachineDeployment{}, c.ofDeployment, revisionChanges()),
			step.Mapped(&clusterv1.MachineSet{}, c.ofSet, revisionChanges()),
			step.Mapped(&corev1.Secret{}, c.ofKubeconfig, isKubeconfig()),
		},
		Paused:  ownership.PausedByClusterName(c.Client, func(m *clusterv1.Machine) string { return m.Spec.ClusterName }),
		Indexes: indexes(),
		Scope:   c.scope,
		Steps: []step.Step[*scope]{
			step.Do("cluster", exists),
			step.Do("adopt", c.adopt),
			step.All(
				step.Do("bootstrap", reference.Reported(c.bootstrap)).Sets(clusterv1.BootstrapReadyV1Beta1Condition),
				step.Do("infrastructure", reference.Reported(c.infrastructure)).Sets(clusterv1.InfrastructureReadyV1Beta1Condition),
				step.Do("node", c.node).Sets(clusterv1.MachineNodeHealthyV1Beta1Condition),
				step.Do("certificates", c.certificates),
				step.Do("update", c.update),
			),
		},
		Deletion: []step.Step[*scope]{
			step.Do("node-work", c.decide),
			step.When((*scope).worksOnNode,
				step.Do("pre-drain-hooks", stage(clusterv1.MachineDeletingWaitingForPreDrainHookReason, nil, c.preDrainHooks)).
					Sets(clusterv1.PreDrainDeleteHookSucceededV1Beta1Condition),
				step.When((*scope).drains,
					step.Do("drain", stage(clusterv1.MachineDeletingDrainingNodeReason, drainStage, c.drain)),
					step.Do("volumes", stage(clusterv1.MachineDeletingWaitingForVolumeDetachReason, nil, c.volumes)),
				),
			),
			step.Do("pre-terminate-hooks", stage(
				clusterv1.MachineDeletingWaitingForPreTerminateHookReason, nil, c.preTerminateHooks)).
				Sets(clusterv1.PreTerminateDeleteHookSucceededV1Beta1Condition),
			step.Do("delete-infrastructure", stage(
				clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason, leavingInfrastructure, c.deleteInfrastructure)),
			step.Do("delete-bootstrap", stage(
				clusterv1.MachineDeletingWaitingForBootstrapDeletionReason, leavingBootstrap, c.deleteBootstrap)),
			step.Do("delete-node", stage(clusterv1.MachineDeletingDeletingNodeReason, nil, c.deleteNode)).
				Sets(clusterv1.MachineNodeHealthyV1Beta1Condition),
			step.Do("finish", c.finish),
		},
		Report: []step.Step[*scope]{
			step.Do("phase", c.phase),
			step.Do("report", c.report),
			step.Do("bounds", bound),
		},
		Reports:    reports,
		Settle:     step.Settle{First: true},
		Conditions: conditions(),
		Observed:   func(m *clusterv1.Machine, g int64) { m.Status.ObservedGeneration = g },
		Progress:   progress(),
	}
}

// conditions declares the conditions that a Machine's Ready summarizes. Until the Machine has a provider ID, the message of
// Ready counts the completed steps of bringUp.
func conditions() condition.Kind {
	bringUp := []clusterv1.ConditionType{clusterv1.InfrastructureReadyV1Beta1Condition, clusterv1.BootstrapReadyV1Beta1Condition}
	return condition.Kind{
		Ready: append(bringUp[:2:2],
			clusterv1.MachineHealthCheckSucceededV1Beta1Condition, clusterv1.MachineOwnerRemediatedV1Beta1Condition,
			clusterv1.DrainingSucceededV1Beta1Condition),
		StepCounter: func(on condition.Getter) ([]clusterv1.ConditionType, bool) {
			m, ok := on.(*clusterv1.Machine)
			if !ok || !m.DeletionTimestamp.IsZero() || m.Spec.ProviderID != "" ||
				condition.Has(m, clusterv1.MachineHealthCheckSucceededV1Beta1Condition) ||
				condition.Has(m, clusterv1.MachineOwnerRemediatedV1Beta1Condition) {
				return nil, false
			}
			return bringUp, true
		},
	}
}

// progress delays the first writes of status: infrastructure providers wait only for the name of the bootstrap data Secret,
// which is in the spec.
func progress() *step.Progress {
	return &step.Progress{
		First:     []string{"phase", "lastUpdated", "initialization.bootstrapDataSecretCreated"},
		FirstTrue: []clusterv1.ConditionType{clusterv1.BootstrapReadyV1Beta1Condition},
	}
}
