// Package kubeadm is the kubeadm bootstrap provider: it makes the data with which a machine becomes a Node
// of a cluster.
package kubeadm

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/config"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/webhook"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/feature"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// flags are the component's own.
type flags struct {
	concurrency, clusterConcurrency int
	tokenTTL                        time.Duration
	keyAlgorithm                    pki.KeyAlgorithm
	workloads                       remote.Flags
}

func (f *flags) register(fs *pflag.FlagSet) {
	fs.IntVar(&f.concurrency, "kubeadmconfig-concurrency", 100, "Number of KubeadmConfigs to process at the same time")
	fs.IntVar(&f.clusterConcurrency, "cluster-concurrency", 10, "Accepted for compatibility: it has no effect")
	fs.DurationVar(&f.tokenTTL, "bootstrap-token-ttl", 15*time.Minute, "Lifetime of bootstrap tokens")
	kubeadm.AddKeyAlgorithm(fs, &f.keyAlgorithm)
	f.workloads.AddTo(fs)
	_ = fs.MarkDeprecated("cluster-concurrency", "remove it: it has no effect") // It only fails for flags that do not exist.
}

// NewComponent returns the kubeadm bootstrap manager.
func NewComponent() manager.Component {
	f := &flags{}
	gates := feature.New(feature.MachinePool, feature.KubeadmBootstrapFormatIgnition)
	return manager.Component{
		Name:             "kubeadm-bootstrap-controller",
		Purpose:          "The kubeadm bootstrap provider: generates the bootstrap data that turns machines into Nodes.",
		Namespace:        "capi-kubeadm-bootstrap-system",
		LeaderElectionID: "kubeadm-bootstrap-manager-leader-election-capi",
		AddToScheme:      []func(*runtime.Scheme) error{clusterv1.AddToScheme, bootstrapv1.AddToScheme},
		AddConverted:     conversion.AddToScheme,
		Conversions:      conversion.New(nil),
		FeatureGates:     gates,
		AddFlags:         f.register,
		Validate:         f.workloads.Validate,
		Cache:            func(o *cache.Options) { o.DefaultTransform = cache.TransformStripManagedFields() },
		WebhookService:   "capi-kubeadm-bootstrap-webhook-service",
		Definitions:      labels.SelectorFromSet(labels.Set{clusterv1.ProviderNameLabel: "bootstrap-kubeadm"}),
		Setup: func(ctx context.Context, mgr ctrl.Manager, env manager.Environment) error {
			return setup(ctx, mgr, env, f, gates)
		},
	}
}

func setup(ctx context.Context, mgr ctrl.Manager, env manager.Environment, f *flags, gates *feature.Gates) error {
	policy, err := f.workloads.Policy(mgr.GetConfig())
	if err != nil {
		return err
	}
	clusters := remote.New(remote.Options{
		Secrets: mgr.GetCache(), Scheme: clientgoscheme.Scheme, UserAgent: env.UserAgent, Policy: policy, Management: mgr.GetConfig(),
		CheckLeader: env.CheckLeader, QPS: f.workloads.QPS, Burst: f.workloads.Burst, Metrics: ctrlmetrics.Registry,
		Wrap: env.WrapWorkload,
	})
	if err := mgr.Add(clusters); err != nil {
		return err
	}
	keys := pki.NewKeys(f.keyAlgorithm)
	if err := mgr.Add(keys); err != nil {
		return err
	}
	err = config.Setup(ctx, mgr, config.Options{
		Concurrency: f.concurrency,
		Filter:      watch.Filter(env.WatchFilter),
		Clusters:    clusters,
		Ignition:    gates.Enabled(feature.KubeadmBootstrapFormatIgnition),
		Pools:       gates.Enabled(feature.MachinePool),
		TokenTTL:    f.tokenTTL,
		Keys:        keys,
	})
	if err != nil {
		return err
	}
	return webhook.Register(mgr, gates.Enabled(feature.KubeadmBootstrapFormatIgnition))
}
