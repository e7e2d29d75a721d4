// Package docker is the Docker infrastructure provider: the machines of workload clusters are containers, for development and
// tests. Those of Dev kinds may also be simulated: see package backend of the in-memory provider. Users who can create its objects
// control the host of the container runtime: nodes are privileged containers.
package docker

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1beta1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/cluster"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine/docker"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/events"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/job"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/machine"
	pool "sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/machinepool"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/webhook"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/backend"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/feature"
	"sigs.k8s.io/cluster-api/sdk/machinepool"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// flags are the flags of this component.
type flags struct {
	concurrency int
	workloads   remote.Flags
	simulation  backend.Flags
}

// ports is the default range of ports of simulated API servers. The in-memory provider has another one.
const ports = "24001-28000"

func (f *flags) register(fs *pflag.FlagSet) {
	fs.IntVar(&f.concurrency, "concurrency", 10, "Number of objects of each kind to process at the same time")
	f.workloads.AddTo(fs)
	f.simulation.AddTo(fs, ports)
}

func (f *flags) validate() error {
	if f.concurrency < 1 {
		return errors.New("--concurrency must be at least 1")
	}
	return errors.Join(f.workloads.Validate(), f.simulation.Validate())
}

// NewComponent returns the Docker manager.
func NewComponent() manager.Component { return component(connect) }

// connect returns the container runtime that the environment selects, as the Docker command line does.
func connect(env manager.Environment) (engine.Engine, error) {
	certificates := ""
	if env.Getenv("DOCKER_TLS_VERIFY") != "" {
		certificates = env.Getenv("DOCKER_CERT_PATH")
	}
	runtime, err := docker.New(docker.Options{Host: env.Getenv("DOCKER_HOST"), CertPath: certificates, UserAgent: env.UserAgent})
	if err != nil {
		return nil, fmt.Errorf("invalid DOCKER_HOST: %w", err)
	}
	return runtime, nil
}

// component returns the manager with a container runtime.
func component(connect func(manager.Environment) (engine.Engine, error)) manager.Component {
	f := &flags{}
	gates := feature.New(feature.MachinePool, feature.ClusterTopology)
	return manager.Component{
		Name:             "capd-manager",
		Purpose:          "The Docker infrastructure provider: runs the machines of clusters as containers. For development and tests.",
		Namespace:        "capd-system",
		LeaderElectionID: "controller-leader-election-capd",
		AddToScheme: []func(*runtime.Scheme) error{
			clusterv1.AddToScheme, dockerv1.AddToScheme, dockerv1beta1.AddToScheme,
		},
		AddConverted:   conversion.AddToScheme,
		Conversions:    conversion.New(nil),
		FeatureGates:   gates,
		AddFlags:       f.register,
		Validate:       f.validate,
		Cache:          func(o *cache.Options) { o.DefaultTransform = cache.TransformStripManagedFields() },
		WebhookService: "capd-webhook-service",
		Definitions:    labels.SelectorFromSet(labels.Set{clusterv1.ProviderNameLabel: "infrastructure-docker"}),
		Setup: func(ctx context.Context, mgr ctrl.Manager, env manager.Environment) error {
			runtime, err := connect(env)
			if err != nil {
				return err
			}
			return setup(ctx, mgr, controllers{
				flags:  f,
				gates:  gates,
				env:    env,
				engine: runtime,
				events: events.New(runtime, clock.RealClock{}),
				filter: watch.Filter(env.WatchFilter),
			})
		},
	}
}

// controllers are what the controllers of all kinds share.
type controllers struct {
	flags  *flags
	gates  *feature.Gates
	env    manager.Environment
	engine engine.Engine
	events *events.Stream
	filter watch.Filter

	// sets are the kinds of objects whose machines are containers, withDev is whether Dev kinds are among them, and withPools whether there
	// are MachinePools.
	sets               []kinds.Set
	withDev, withPools bool
}

func setup(ctx context.Context, mgr ctrl.Manager, c controllers) error {
	if err := mgr.Add(c.events); err != nil {
		return err
	}
	if err := c.find(ctx); err != nil {
		return err
	}
	for _, add := range []func(context.Context, ctrl.Manager) error{c.clusters, c.machines, c.pools, c.simulated} {
		if err := add(ctx, mgr); err != nil {
			return err
		}
	}
	return webhook.Register(mgr, c.gates.Enabled(feature.ClusterTopology))
}

// find finds out which kinds there are. Earlier versions of the provider have no Dev kinds.
func (c *controllers) find(ctx context.Context) error {
	var err error
	if c.withDev, err = c.env.Watches(ctx, kinds.Dev().NewCluster()); err != nil {
		return err
	}
	c.sets = []kinds.Set{kinds.Docker()}
	if c.withDev {
		c.sets = append(c.sets, kinds.Dev())
	}
	if c.gates.Enabled(feature.MachinePool) {
		c.withPools, err = c.env.Watches(ctx, &clusterv1.MachinePool{})
	}
	return err
}

// clusters adds the controllers of clusters.
func (c controllers) clusters(ctx context.Context, mgr ctrl.Manager) error {
	for _, set := range c.sets {
		jobs := job.New(clock.RealClock{})
		if err := mgr.Add(jobs); err != nil {
			return err
		}
		err := cluster.Setup(ctx, mgr, cluster.Options{
			Concurrency: c.flags.concurrency, Filter: c.filter, Kinds: set, Engine: c.engine, Events: c.events, Jobs: jobs,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// machines adds the controllers of machines, with their connections to workload clusters and their jobs.
func (c controllers) machines(ctx context.Context, mgr ctrl.Manager) error {
	policy, err := c.flags.workloads.Policy(mgr.GetConfig())
	if err != nil {
		return err
	}
	clusters := remote.New(remote.Options{
		Secrets:     mgr.GetCache(),
		Scheme:      clientgoscheme.Scheme,
		UserAgent:   c.env.UserAgent,
		Cached:      []remote.Cached{remote.Nodes()},
		Policy:      policy,
		QPS:         c.flags.workloads.QPS,
		Burst:       c.flags.workloads.Burst,
		Management:  mgr.GetConfig(),
		CheckLeader: c.env.CheckLeader,
		Wrap:        c.env.WrapWorkload,
		Metrics:     ctrlmetrics.Registry,
	})
	if err := mgr.Add(clusters); err != nil {
		return err
	}
	for _, set := range c.sets {
		jobs := job.New(clock.RealClock{})
		if err := mgr.Add(jobs); err != nil {
			return err
		}
		err := machine.Setup(ctx, mgr, machine.Options{
			Concurrency: c.flags.concurrency, Filter: c.filter, Kinds: set, Engine: c.engine, Events: c.events, Clusters: clusters, Jobs: jobs,
			Pools: c.withPools,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pools adds the controllers of pools, if there are MachinePools.
func (c controllers) pools(ctx context.Context, mgr ctrl.Manager) error {
	if !c.withPools {
		return nil
	}
	options := machinepool.Options{Concurrency: c.flags.concurrency, Filter: c.filter}
	if err := machinepool.Setup(ctx, mgr, pool.Provider(), options); err != nil || !c.withDev {
		return err
	}
	return machinepool.Setup(ctx, mgr, pool.DevProvider(), options)
}

// simulated adds the controllers of the objects whose machines are simulated. They do not need the container runtime.
func (c controllers) simulated(ctx context.Context, mgr ctrl.Manager) error {
	if !c.withDev {
		return nil
	}
	_, err := backend.Dev(ctx, mgr, backend.Options{
		Flags: &c.flags.simulation, Env: c.env, Filter: c.filter, Pools: c.withPools,
		ClusterConcurrency: c.flags.concurrency, MachineConcurrency: c.flags.concurrency,
	})
	return err
}
