package config

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects of this manager.
	Filter watch.Filter
	// Clusters has the connections to workload clusters, where tokens are created.
	Clusters *remote.Clusters
	// Ignition allows the format ignition.
	Ignition bool
	// Pools allows configs of MachinePools.
	Pools bool
	// TokenTTL is the lifetime of bootstrap tokens.
	TokenTTL time.Duration
	// Keys generates the keys of clusters without a control plane object. The manager must run it.
	Keys *pki.Keys
}

func conditions() condition.Kind {
	return condition.Kind{
		Ready: []clusterv1.ConditionType{bootstrapv1.DataSecretAvailableV1Beta1Condition, bootstrapv1.CertificatesAvailableV1Beta1Condition},
	}
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{Clients: step.ClientsOf(mgr, "kubeadmconfig-controller", o.Filter), cached: mgr.GetCache(), workloads: o.Clusters,
		ignition: o.Ignition, pools: o.Pools, tokenTTL: o.TokenTTL, keys: o.Keys}
	c.external = external.Reader{Client: c.Live, Versions: contract.APIVersions{Reader: c.Client}}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	declared.Watches = []step.Watch{
		step.Mapped(&clusterv1.Cluster{}, c.ofCluster,
			watch.Cluster(watch.Paused, watch.Endpoint, watch.InfrastructureReady, watch.ControlPlaneInitialized)),
		step.Mapped(&clusterv1.Machine{}, ofMachine, watch.Created()),
		step.From(o.Clusters.Source(remote.Events{Connection: c.waitingFor})),
	}
	if o.Pools {
		declared.Watches = append(declared.Watches, step.Mapped(&clusterv1.MachinePool{}, ofMachinePool, watch.Created()))
	}
	return step.Add(ctx, mgr, c.Clients, declared)
}

// declared returns the controller's declaration. Deletion needs no steps.
func (c *Controller) declared() step.Controller[*bootstrapv1.KubeadmConfig, *scope] {
	return step.Controller[*bootstrapv1.KubeadmConfig, *scope]{
		Name:   "kubeadmconfig",
		New:    func() *bootstrapv1.KubeadmConfig { return &bootstrapv1.KubeadmConfig{} },
		Paused: ownership.PausedByCluster[*bootstrapv1.KubeadmConfig](c.Client),
		Scope:  newScope,
		Steps: []step.Step[*scope]{
			step.Do("owner", c.owner),
			step.Do("format", c.format),
			step.Do("infrastructure", c.infrastructure),
			step.Do("adopt", c.adopt),
			step.Do("token", c.token),
			step.Do("initialize", c.initialize),
			step.Do("join", c.join),
		},
		Reports:    reports,
		Conditions: conditions(),
		Observed:   func(config *bootstrapv1.KubeadmConfig, g int64) { config.Status.ObservedGeneration = g },
		Progress:   &step.Progress{},
	}
}
