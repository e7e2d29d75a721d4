package healthcheck

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/healthcheck/diagnosis"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	// Clusters connects to workload clusters. It must cache Nodes.
	Clusters *remote.Clusters
	// MaxUnhealthyClusters and MaxUnhealthyMachines are numbers or percentages: while more are unhealthy, nothing is remediated.
	MaxUnhealthyClusters, MaxUnhealthyMachines string
}

// ValidateLimits returns an error unless both are numbers or percentages.
func ValidateLimits(maxUnhealthyClusters, maxUnhealthyMachines string) error {
	_, err := diagnosis.NewFleetLimits(maxUnhealthyClusters, maxUnhealthyMachines)
	return err
}

// Setup adds the controller to a manager. It requires the indexes of the Machine controller.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	limits, err := diagnosis.NewFleetLimits(o.MaxUnhealthyClusters, o.MaxUnhealthyMachines)
	if err != nil {
		return err
	}
	c := newController(step.ClientsOf(mgr, "machinehealthcheck-controller", o.Filter), o.Clusters, limits)
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	declared.Watches = append(declared.Watches, step.From(o.Clusters.Source(remote.Events{
		Connection: c.ofConnection,
		Watches:    []remote.Watch{{Object: &corev1.Node{}, Requests: c.ofNode, Changed: nodeChanged}},
	})))
	built, err := declared.Add(ctx, mgr, c.Clients)
	if err != nil {
		return err
	}
	c.requestKinds = external.NewWatcher(built, mgr.GetCache())
	return nil
}

// newController returns a Controller without watches of requests.
func newController(clients step.Clients, workloads Workloads, limits diagnosis.FleetLimits) *Controller {
	return &Controller{
		Clients: clients, workloads: workloads, memory: newMemory(), suspects: newSuspects(),
		external: external.Reader{Client: clients.Client, Versions: contract.APIVersions{Reader: clients.Client}},
		fleet:    &fleet{machines: clients.Client, limits: limits, clock: clients.Clock},
	}
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*clusterv1.MachineHealthCheck, *scope] {
	return step.Controller[*clusterv1.MachineHealthCheck, *scope]{
		Name: "machinehealthcheck",
		New:  func() *clusterv1.MachineHealthCheck { return &clusterv1.MachineHealthCheck{} },
		Watches: []step.Watch{
			step.Mapped(&clusterv1.Machine{}, c.ofMachine, machineChanges()),
			step.Mapped(&clusterv1.Machine{}, c.ofConditions, statusesChanged()),
			step.Mapped(&clusterv1.Cluster{}, c.ofCluster,
				watch.Cluster(watch.Paused, watch.Deleting, watch.InfrastructureReady, watch.ControlPlaneInitialized)),
		},
		Paused:  ownership.PausedByClusterName(c.Client, func(h *clusterv1.MachineHealthCheck) string { return h.Spec.ClusterName }),
		Indexes: indexes(),
		Scope:   c.scope,
		Steps: []step.Step[*scope]{
			step.Do("cluster", exists),
			step.Do("adopt", adopt),
			step.Do("diagnose", c.diagnose),
			step.Do("confirm", c.confirm),
			step.All(
				step.Do("mark", c.mark),
				step.Do("request", c.request),
			),
		},
		Report:     []step.Step[*scope]{step.Do("status", c.status)},
		Reports:    reports,
		ErrorEvent: "ReconcileError",
		Observed: func(h *clusterv1.MachineHealthCheck, g int64) {
			if reported(h) { // While the first counters are held back, this is no reason for a write.
				h.Status.ObservedGeneration = g
			}
		},
		// While a cluster is being created, most first results change within moments.
		Progress: &step.Progress{
			First:     []string{"expectedMachines", "currentHealthy", "remediationsAllowed", "targets"},
			FirstTrue: []clusterv1.ConditionType{clusterv1.RemediationAllowedV1Beta1Condition},
			OnlyFirst: true,
		},
	}
}
