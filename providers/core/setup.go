// Package core is the core provider: the controllers and webhooks of Clusters, Machines, the kinds that manage Machines, and
// ClusterClasses.
package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/cluster"
	"sigs.k8s.io/cluster-api/providers/core/internal/clusterclass"
	"sigs.k8s.io/cluster-api/providers/core/internal/extensionconfig"
	"sigs.k8s.io/cluster-api/providers/core/internal/healthcheck"
	"sigs.k8s.io/cluster-api/providers/core/internal/machine"
	"sigs.k8s.io/cluster-api/providers/core/internal/machinedeployment"
	"sigs.k8s.io/cluster-api/providers/core/internal/machinepool"
	"sigs.k8s.io/cluster-api/providers/core/internal/machineset"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset"
	"sigs.k8s.io/cluster-api/providers/core/internal/restored"
	"sigs.k8s.io/cluster-api/providers/core/internal/templates"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/classes"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/mutation"
	"sigs.k8s.io/cluster-api/providers/core/internal/webhook"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/feature"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// flags are the flags of this component.
type flags struct {
	topology, class, cluster, extension                      int
	machine, set, deployment, pool, resourceSet, healthCheck int
	drainTimeout, connectionGrace, conditionsGrace           time.Duration
	namedAfterTemplates                                      bool
	maxUnhealthyClusters, maxUnhealthyMachines               string
	syncLabels, syncAnnotations                              []string
	selection                                                machine.Selection
	preflightChecks                                          machineset.Checks
	workloads                                                remote.Flags
	extensions                                               extension.Flags
}

func (f *flags) register(fs *pflag.FlagSet) {
	workers := func(p *int, number int, name, what string) {
		fs.IntVar(p, name+"-concurrency", number, "Number of "+what+" to process at the same time")
	}
	// Most of what takes long is in workload clusters, some of which never respond. Topologies are computed, with all their objects in memory.
	workers(&f.machine, 100, "machine", "Machines")
	workers(&f.cluster, 50, "cluster", "Clusters")
	workers(&f.set, 50, "machineset", "MachineSets")
	workers(&f.deployment, 50, "machinedeployment", "MachineDeployments")
	workers(&f.pool, 50, "machinepool", "MachinePools")
	workers(&f.healthCheck, 50, "machinehealthcheck", "MachineHealthChecks")
	workers(&f.topology, 10, "clustertopology", "Clusters of a ClusterClass")
	workers(&f.class, 10, "clusterclass", "ClusterClasses")
	workers(&f.extension, 10, "extensionconfig", "ExtensionConfigs")
	workers(&f.resourceSet, 10, "clusterresourceset", "ClusterResourceSets")
	fs.StringVar(&f.maxUnhealthyClusters, "remediation-max-unhealthy-clusters", "30%",
		"Number or percentage of Clusters; while more have unhealthy Machines at the same time, no Machine is remediated: a network may "+
			"be cut. Only Clusters with health checks count. A percentage allows at least 10. 100% disables it")
	fs.StringVar(&f.maxUnhealthyMachines, "remediation-max-unhealthy-machines", "30%",
		"The same for Machines. A percentage allows at least 50")
	fs.DurationVar(&f.drainTimeout, "node-drain-client-timeout-duration", 10*time.Second,
		"Timeout of requests that drain a Node; must be positive")
	// It only fails for flags that do not exist.
	_ = fs.MarkDeprecated("node-drain-client-timeout-duration", "remove it, unless 10s are not enough: Cluster API v1.14 does not have it")
	fs.DurationVar(&f.connectionGrace, "remote-connection-grace-period", 50*time.Second,
		"How long the connection to a workload cluster may be down before condition RemoteConnectionProbe of the Cluster is False")
	fs.DurationVar(&f.conditionsGrace, "remote-conditions-grace-period", 5*time.Minute,
		"How long the connection to a workload cluster may be down before conditions about its Nodes become Unknown")
	fs.StringSliceVar((*[]string)(&f.preflightChecks), "machineset-preflight-checks", []string{"All"},
		"Preflight checks of MachineSets, comma-separated, if the feature gate MachineSetPreflightChecks is on: All, KubeadmVersionSkew, "+
			"KubernetesVersionSkew, ControlPlaneIsStable, ControlPlaneVersionSkew")
	fs.StringSliceVar(&f.syncLabels, "additional-sync-machine-labels", nil,
		"Regular expressions, comma-separated, of labels that are copied from Machines to Nodes, besides those of node-role.kubernetes.io, "+
			"node-restriction.kubernetes.io and node.cluster.x-k8s.io")
	fs.StringSliceVar(&f.syncAnnotations, "additional-sync-machine-annotations", nil,
		"The same for annotations, besides those of node.cluster.x-k8s.io")
	fs.BoolVar(&f.namedAfterTemplates, "use-deprecated-infra-machine-naming", false,
		"Name new infrastructure machines after their template instead of their Machine, as before v1.7")
	f.extensions.AddTo(fs)
	f.workloads.AddTo(fs)
}

func (f *flags) validate() error {
	if f.drainTimeout <= 0 {
		return fmt.Errorf("invalid --node-drain-client-timeout-duration %s: must be positive", f.drainTimeout)
	}
	if f.connectionGrace <= 0 || f.conditionsGrace <= 0 {
		return fmt.Errorf("invalid --remote-connection-grace-period %s or --remote-conditions-grace-period %s: both must be positive",
			f.connectionGrace, f.conditionsGrace)
	}
	err := f.extensions.Validate()
	if err != nil {
		return err
	}
	if err := f.preflightChecks.Validate(); err != nil {
		return fmt.Errorf("invalid --machineset-preflight-checks: %w", err)
	}
	if f.selection, err = machine.NewSelection(f.syncLabels, f.syncAnnotations); err != nil {
		return fmt.Errorf("invalid --additional-sync-machine-labels or --additional-sync-machine-annotations: %w", err)
	}
	if err := healthcheck.ValidateLimits(f.maxUnhealthyClusters, f.maxUnhealthyMachines); err != nil {
		return fmt.Errorf("invalid --remediation-max-unhealthy-clusters or --remediation-max-unhealthy-machines: %w", err)
	}
	return f.workloads.Validate()
}

// NewComponent returns the core provider as a component of a manager.
func NewComponent() manager.Component {
	f := &flags{}
	gates := feature.New(feature.MachinePool, feature.ClusterResourceSet, feature.ClusterTopology, feature.RuntimeSDK,
		feature.MachineSetPreflightChecks, feature.MachineTaintPropagation, feature.InPlaceUpdates,
		feature.ClusterTopologyWorkerVersionPinning)
	versions := &contract.Lookup{}
	conversions := conversion.New(versions.Version)
	return manager.Component{
		Name: "cluster-api-controller",
		Purpose: "The core provider of Cluster API: controllers and webhooks of Clusters, ClusterClasses, Machines, " +
			"MachineSets, MachineDeployments, MachinePools and ClusterResourceSets.",
		Namespace:        "capi-system",
		LeaderElectionID: "controller-leader-election-capi",
		AddToScheme: []func(*runtime.Scheme) error{
			clusterv1.AddToScheme, addonsv1.AddToScheme, ipamv1.AddToScheme, runtimev1.AddToScheme,
			apiextensionsv1.AddToScheme,
		},
		AddConverted:   conversion.AddToScheme,
		Conversions:    conversions,
		FeatureGates:   gates,
		AddFlags:       f.register,
		Validate:       f.validate,
		WebhookService: "capi-webhook-service",
		Definitions:    labels.SelectorFromSet(labels.Set{clusterv1.ProviderNameLabel: "cluster-api"}),
		Setup: func(ctx context.Context, mgr ctrl.Manager, env manager.Environment) error {
			versions.Use(contract.APIVersions{Reader: mgr.GetClient()})
			s := &setup{
				mgr: mgr, env: env, flags: f, gates: gates, conversions: conversions,
				recent: step.NewRecent(env.ExclusiveFor, clock.RealClock{}),
			}
			return s.all(ctx)
		},
	}
}

// setup adds the controllers and webhooks to one manager.
type setup struct {
	mgr      ctrl.Manager
	env      manager.Environment
	flags    *flags
	gates    *feature.Gates
	clusters *remote.Clusters
	// conversions converts what runtime extensions are sent that want v1beta1.
	conversions *conversion.Registry
	// extensions calls runtime extensions. It is nil without the feature gate RuntimeSDK.
	extensions *extension.Client
	// elsewhere has the ClusterClasses of other namespaces; nil unless the manager watches one namespace.
	elsewhere *classes.Elsewhere
	// recent records recent writes; all controllers share it.
	recent *step.Recent
}

func (s *setup) all(ctx context.Context) error {
	policy, err := s.flags.workloads.Policy(s.mgr.GetConfig())
	if err != nil {
		return err
	}
	s.clusters = remote.New(remote.Options{
		Secrets:     s.mgr.GetCache(),
		Scheme:      clientgoscheme.Scheme,
		UserAgent:   s.env.UserAgent,
		Cached:      []remote.Cached{remote.Nodes()},
		Policy:      policy,
		QPS:         s.flags.workloads.QPS,
		Burst:       s.flags.workloads.Burst,
		Management:  s.mgr.GetConfig(),
		CheckLeader: s.env.CheckLeader,
		Metrics:     ctrlmetrics.Registry,
		Wrap:        s.env.WrapWorkload,
	})
	if err := s.mgr.Add(s.clusters); err != nil {
		return err
	}
	if s.env.WatchNamespace != "" && s.gates.Enabled(feature.ClusterTopology) {
		if err := s.classesElsewhere(); err != nil {
			return err
		}
	}
	if s.gates.Enabled(feature.RuntimeSDK) {
		if err := s.runtimeExtensions(ctx); err != nil {
			return err
		}
	}
	if err := s.controllers(ctx); err != nil {
		return err
	}
	if s.gates.Enabled(feature.MachinePool) {
		if err := s.pools(ctx); err != nil {
			return err
		}
	}
	if s.gates.Enabled(feature.ClusterResourceSet) {
		if err := s.resourceSets(ctx); err != nil {
			return err
		}
	}
	if s.gates.Enabled(feature.ClusterTopology) {
		if err := s.topology(ctx); err != nil {
			return err
		}
	}
	return s.webhooks()
}

func (s *setup) classesElsewhere() (err error) {
	s.elsewhere, err = classes.NewElsewhere(s.env.WatchNamespace, func(o cache.Options) (cache.Cache, error) {
		return s.env.NewCache(s.mgr, o)
	})
	if err != nil {
		return err
	}
	return s.mgr.Add(s.elsewhere)
}

func (s *setup) controllers(ctx context.Context) error {
	if err := classes.Index(ctx, s.mgr.GetFieldIndexer()); err != nil {
		return err
	}
	filter := watch.Filter(s.env.WatchFilter)
	return errors.Join(
		cluster.Setup(ctx, s.mgr, cluster.Options{
			Concurrency: s.flags.cluster, Filter: filter, Forget: s.clusters.Forget, Recent: s.recent,
			LifecycleHooks: s.gates.Enabled(feature.RuntimeSDK) && s.gates.Enabled(feature.ClusterTopology),
			Clusters:       s.clusters, ConnectionGrace: s.flags.connectionGrace,
			Classes: s.elsewhere.Over(s.mgr.GetClient(), s.mgr.GetClient()),
		}),
		restored.Setup(ctx, s.mgr, restored.Options{Concurrency: s.flags.cluster, Filter: filter, Clusters: s.clusters}),
		machine.Setup(ctx, s.mgr, machine.Options{
			Concurrency: s.flags.machine, Filter: filter, Clusters: s.clusters, DrainTimeout: s.flags.drainTimeout,
			ConnectionGrace: s.flags.conditionsGrace, Selection: s.flags.selection, Taints: s.gates.Enabled(feature.MachineTaintPropagation),
			Updater: s.updater(),
		}),
		machineset.Setup(ctx, s.mgr, machineset.Options{
			Concurrency: s.flags.set, Filter: filter, Preflight: s.gates.Enabled(feature.MachineSetPreflightChecks), Recent: s.recent,
			NamedAfterTemplates: s.flags.namedAfterTemplates, Checks: s.flags.preflightChecks, InPlace: s.updater() != nil,
		}),
		machinedeployment.Setup(ctx, s.mgr, machinedeployment.Options{
			Concurrency: s.flags.deployment, Filter: filter, Recent: s.recent, Updater: s.updater(),
		}),
		healthcheck.Setup(ctx, s.mgr, healthcheck.Options{
			Concurrency: s.flags.healthCheck, Filter: filter, Clusters: s.clusters,
			MaxUnhealthyClusters: s.flags.maxUnhealthyClusters, MaxUnhealthyMachines: s.flags.maxUnhealthyMachines,
		}),
	)
}

// updater returns what calls the extension that updates Machines in place; nil without the feature gates.
func (s *setup) updater() inplace.Caller {
	if s.extensions == nil || !s.gates.Enabled(feature.InPlaceUpdates) {
		return nil
	}
	return s.extensions
}

func (s *setup) pools(ctx context.Context) error {
	return machinepool.Setup(ctx, s.mgr, machinepool.Options{
		Concurrency: s.flags.pool, Filter: watch.Filter(s.env.WatchFilter), Clusters: s.clusters,
		Taints: s.gates.Enabled(feature.MachineTaintPropagation),
	})
}

func (s *setup) resourceSets(ctx context.Context) error {
	return resourceset.Setup(ctx, s.mgr, resourceset.Options{
		Concurrency: s.flags.resourceSet, Filter: watch.Filter(s.env.WatchFilter), Namespace: s.env.WatchNamespace, Clusters: s.clusters,
	})
}

func (s *setup) topology(ctx context.Context) error {
	filter := watch.Filter(s.env.WatchFilter)
	classes := clusterclass.Options{Concurrency: s.flags.class, Filter: filter}
	clusters := topology.Options{Concurrency: s.flags.topology, Filter: filter, Recent: s.recent, Clusters: s.clusters, Elsewhere: s.elsewhere}
	if s.extensions != nil {
		patches := mutation.New(s.extensions, clock.RealClock{})
		classes.Discover, clusters.Extension, clusters.Lifecycle = patches.DiscoverVariables, patches, s.extensions
		clusters.Upgrades = patches
	}
	return errors.Join(
		clusterclass.Setup(ctx, s.mgr, classes),
		topology.Setup(ctx, s.mgr, clusters),
		templates.Setup(ctx, s.mgr, templates.Options{Concurrency: 1, Filter: filter}),
	)
}

// runtimeExtensions adds the controller of ExtensionConfigs, and what the other controllers call extensions with.
func (s *setup) runtimeExtensions(ctx context.Context) error {
	caller, err := s.flags.extensions.NewCaller(s.mgr, s.env)
	if err != nil {
		return err
	}
	s.extensions, err = extension.NewFor(s.mgr, s.env, caller, s.conversions, s.flags.topology/2)
	if err != nil {
		return err
	}
	return extensionconfig.Setup(ctx, s.mgr, extensionconfig.Options{
		Concurrency: s.flags.extension, Filter: watch.Filter(s.env.WatchFilter), Caller: caller,
	})
}

func (s *setup) webhooks() error {
	// Webhooks are called for the objects of all namespaces.
	all := s.elsewhere.Over(s.mgr.GetClient(), s.mgr.GetAPIReader())
	reader := external.Reader{Client: all, Versions: contract.APIVersions{Reader: s.mgr.GetClient()}}
	return webhook.Register(s.mgr, webhook.Options{
		Reader: all,
		Object: reader.Object,
		Workload: func(ctx context.Context, key types.NamespacedName) (client.Reader, error) {
			return s.clusters.Get(ctx, key)
		},
		ClusterResourceSet:                  s.gates.Enabled(feature.ClusterResourceSet),
		ClusterTopology:                     s.gates.Enabled(feature.ClusterTopology),
		MachinePool:                         s.gates.Enabled(feature.MachinePool),
		MachineSetPreflightChecks:           s.gates.Enabled(feature.MachineSetPreflightChecks),
		MachineTaintPropagation:             s.gates.Enabled(feature.MachineTaintPropagation),
		RuntimeSDK:                          s.gates.Enabled(feature.RuntimeSDK),
		ClusterTopologyWorkerVersionPinning: s.gates.Enabled(feature.ClusterTopologyWorkerVersionPinning),
	})
}
