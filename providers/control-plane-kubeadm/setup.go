// Package kubeadm is the kubeadm control plane provider: it runs the control planes of clusters on Machines.
package kubeadm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/controlplane"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/credentials"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/webhook"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/workload"
	"sigs.k8s.io/cluster-api/providers/internal/etcd"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/feature"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// flags are the flags of this component.
type flags struct {
	concurrency                      int
	etcdDialTimeout, etcdCallTimeout time.Duration
	etcdJoinTimeout                  time.Duration
	conditionsGrace                  time.Duration
	keyAlgorithm                     pki.KeyAlgorithm
	namedAfterTemplates              bool
	workloads                        remote.Flags
	extensions                       extension.Flags
}

func (f *flags) register(fs *pflag.FlagSet) {
	fs.IntVar(&f.concurrency, "kubeadmcontrolplane-concurrency", 100, "Number of KubeadmControlPlanes to process at the same time")
	fs.DurationVar(&f.etcdDialTimeout, "etcd-dial-timeout-duration", etcd.DefaultDialTimeout, "Timeout for connecting to an etcd member")
	fs.DurationVar(&f.etcdCallTimeout, "etcd-call-timeout-duration", etcd.DefaultCallTimeout, "Timeout for a call to an etcd member")
	fs.DurationVar(&f.etcdJoinTimeout, "etcd-join-timeout-duration", membership.DefaultJoinTimeout,
		"How long kubeadm takes at most from reading the configuration of a cluster to joining its etcd. A deleted Machine that has not joined "+
			"is held that long after its bootstrap token was revoked, if etcd could lose its quorum otherwise")
	fs.StringVar(new(string), "etcd-client-log-level", "info", "Accepted for compatibility, without effect")
	// It only fails for flags that do not exist.
	_ = fs.MarkDeprecated("etcd-client-log-level", "remove it: -v decides what is logged, and the flag has no effect")
	fs.DurationVar(&f.conditionsGrace, "remote-conditions-grace-period", connection.DefaultGrace,
		"How long the connection to a workload cluster may be down before conditions about its control plane become Unknown")
	kubeadm.AddKeyAlgorithm(fs, &f.keyAlgorithm)
	fs.BoolVar(&f.namedAfterTemplates, "use-deprecated-infra-machine-naming", false,
		"Name new infrastructure machines after their template instead of their Machine, as before v1.7")
	f.workloads.AddTo(fs)
	f.extensions.AddTo(fs)
}

func (f *flags) validate() error {
	for name, value := range map[string]time.Duration{
		"etcd-dial-timeout-duration": f.etcdDialTimeout, "etcd-call-timeout-duration": f.etcdCallTimeout,
		"etcd-join-timeout-duration":     f.etcdJoinTimeout,
		"remote-conditions-grace-period": f.conditionsGrace,
	} {
		if value <= 0 {
			return fmt.Errorf("invalid --%s %s: must be positive", name, value)
		}
	}
	return errors.Join(f.workloads.Validate(), f.extensions.Validate())
}

// NewComponent returns the kubeadm control plane manager.
func NewComponent() manager.Component {
	f := &flags{}
	gates := feature.New(feature.MachinePool, feature.ClusterTopology, feature.KubeadmBootstrapFormatIgnition,
		feature.MachineTaintPropagation, feature.RuntimeSDK, feature.InPlaceUpdates)
	versions := &contract.Lookup{}
	conversions := conversion.New(versions.Version)
	return manager.Component{
		Name:             "kubeadm-control-plane-controller",
		Purpose:          "The kubeadm control plane provider: creates, upgrades and remediates control planes, including etcd and certificates.",
		Namespace:        "capi-kubeadm-control-plane-system",
		LeaderElectionID: "kubeadm-control-plane-manager-leader-election-capi",
		// Two leaders at the same time could each remove an etcd member, so the lease is long.
		LeaderElection: manager.LeaderElectionDurations{Lease: time.Minute, RenewDeadline: 40 * time.Second, RetryPeriod: 5 * time.Second},
		AddToScheme: []func(*runtime.Scheme) error{
			clusterv1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme, runtimev1.AddToScheme,
		},
		AddConverted:   conversion.AddToScheme,
		Conversions:    conversions,
		FeatureGates:   gates,
		AddFlags:       f.register,
		Validate:       f.validate,
		Cache:          restrict,
		WebhookService: "capi-kubeadm-control-plane-webhook-service",
		Definitions:    labels.SelectorFromSet(labels.Set{clusterv1.ProviderNameLabel: "control-plane-kubeadm"}),
		Setup: func(ctx context.Context, mgr ctrl.Manager, env manager.Environment) error {
			versions.Use(contract.APIVersions{Reader: mgr.GetClient()})
			return setup(ctx, mgr, env, f, gates, conversions)
		},
	}
}

// restrict caches managedFields of Machines only, which show the labels that this provider has set.
func restrict(o *cache.Options) {
	o.DefaultTransform = cache.TransformStripManagedFields()
	o.ByObject[&clusterv1.Machine{}] = cache.ByObject{Transform: func(in any) (any, error) { return in, nil }}
}

// setup adds everything to the manager.
func setup(
	ctx context.Context, mgr ctrl.Manager, env manager.Environment, f *flags, gates *feature.Gates, conversions *conversion.Registry,
) error {
	policy, err := f.workloads.Policy(mgr.GetConfig())
	if err != nil {
		return err
	}
	connections := remote.New(remote.Options{
		Secrets: mgr.GetCache(), Scheme: clientgoscheme.Scheme, UserAgent: env.UserAgent, Cached: workload.Cached(), Policy: policy,
		Management: mgr.GetConfig(), CheckLeader: env.CheckLeader, QPS: f.workloads.QPS, Burst: f.workloads.Burst,
		Metrics: ctrlmetrics.Registry, Wrap: env.WrapWorkload,
	})
	secrets := credentials.SecretReader{Cached: mgr.GetCache(), Live: mgr.GetAPIReader()}
	workloads := workload.New(workload.Options{
		Connections: connections, Secrets: secrets, EtcdDialTimeout: f.etcdDialTimeout, EtcdCallTimeout: f.etcdCallTimeout,
		CheckLeader: env.CheckLeader,
	})
	if err := mgr.Add(connections); err != nil {
		return err
	}
	if err := mgr.Add(workloads); err != nil {
		return err
	}
	keys := pki.NewKeys(f.keyAlgorithm)
	if err := mgr.Add(keys); err != nil {
		return err
	}
	pools := gates.Enabled(feature.MachinePool)
	watched := false
	if pools {
		if watched, err = env.Watches(ctx, &clusterv1.MachinePool{}); err != nil {
			return err
		}
	}
	updater, err := f.updater(mgr, env, gates, conversions)
	if err != nil {
		return err
	}
	err = controlplane.Setup(ctx, mgr, controlplane.Options{
		Concurrency: f.concurrency, Filter: watch.Filter(env.WatchFilter),
		Secrets: secrets, Workloads: workloads, Connections: connections,
		MachinePools: pools, WatchesMachinePools: watched, ConditionsGrace: f.conditionsGrace, JoinTimeout: f.etcdJoinTimeout, Keys: keys,
		NamedAfterTemplates: f.namedAfterTemplates, Metrics: ctrlmetrics.Registry, Updater: updater,
	})
	if err != nil {
		return err
	}
	return webhook.Register(mgr, webhook.Gates{
		Ignition:                gates.Enabled(feature.KubeadmBootstrapFormatIgnition),
		ClusterTopology:         gates.Enabled(feature.ClusterTopology),
		MachineTaintPropagation: gates.Enabled(feature.MachineTaintPropagation),
	})
}

// updater returns what calls the extension that updates Machines in place; nil without the feature gates. One server occupies at most half
// of the workers.
func (f *flags) updater(
	mgr ctrl.Manager, env manager.Environment, gates *feature.Gates, conversions *conversion.Registry,
) (inplace.Caller, error) {
	if !gates.Enabled(feature.RuntimeSDK) || !gates.Enabled(feature.InPlaceUpdates) {
		return nil, nil
	}
	caller, err := f.extensions.NewCaller(mgr, env)
	if err != nil {
		return nil, err
	}
	return extension.NewFor(mgr, env, caller, conversions, max(f.concurrency/2, 1))
}
