// Package operator is the operator: it installs, changes, upgrades and deletes the providers of its management cluster as objects
// declare them.
package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/internal/distribution"
	"sigs.k8s.io/cluster-api/internal/distribution/lock"
	"sigs.k8s.io/cluster-api/internal/distribution/repository"
	"sigs.k8s.io/cluster-api/internal/distribution/upgrade"
	"sigs.k8s.io/cluster-api/operator/internal/controller"
	"sigs.k8s.io/cluster-api/operator/internal/declaration"
	"sigs.k8s.io/cluster-api/operator/internal/engine"
	"sigs.k8s.io/cluster-api/operator/internal/source"
	"sigs.k8s.io/cluster-api/operator/internal/webhook"
	"sigs.k8s.io/cluster-api/provider/manager"
	"sigs.k8s.io/cluster-api/provider/watch"
)

// flags are the flags of this component.
type flags struct {
	concurrency int
	timeout     time.Duration
}

func (f *flags) register(fs *pflag.FlagSet) {
	fs.IntVar(&f.concurrency, "concurrency", 10, "Number of providers of each type to process at the same time")
	fs.DurationVar(&f.timeout, "provider-timeout", 5*time.Minute, "How long each Deployment of a changed provider may take to become available before the change is undone")
}

// NewComponent returns the operator as a component of a manager.
func NewComponent() manager.Component {
	f := &flags{}
	return manager.Component{
		Name:             "cluster-api-operator",
		Purpose:          "The operator: installs, changes, upgrades and deletes providers as objects declare them.",
		Namespace:        "capi-operator-system",
		LeaderElectionID: "controller-leader-election-capi-operator",
		AddToScheme:      []func(*runtime.Scheme) error{operatorv1.AddToScheme, appsv1.AddToScheme},
		AddFlags:         f.register,
		Cache:            cacheOf,
		WebhookService:   "capi-operator-webhook-service",
		Setup: func(ctx context.Context, mgr ctrl.Manager, env manager.Environment) error {
			return errors.Join(controllers(ctx, mgr, env, f), webhook.Register(mgr))
		},
	}
}

// cacheOf limits the cache to the Deployments of providers, and to ConfigMaps with declarations.
func cacheOf(o *cache.Options) {
	o.DefaultTransform = cache.TransformStripManagedFields()
	if o.ByObject == nil {
		o.ByObject = map[client.Object]cache.ByObject{}
	}
	o.ByObject[&appsv1.Deployment{}] = cache.ByObject{Label: with(clusterv1.ProviderNameLabel)}
	o.ByObject[&corev1.ConfigMap{}] = cache.ByObject{Label: with(operatorv1.DeclarationsLabel)}
}

// with selects the objects with a label.
func with(label string) labels.Selector {
	requirement, err := labels.NewRequirement(label, selection.Exists, nil)
	if err != nil {
		panic(err) // The label is a constant.
	}
	return labels.NewSelector().Add(*requirement)
}

func controllers(ctx context.Context, mgr ctrl.Manager, env manager.Environment, f *flags) error {
	// The inventory is not in the manager's scheme: the operator itself installs its definition, so that the manager must not wait for it.
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), operatorv1.AddToScheme(scheme), clusterctlv1.AddToScheme(scheme)); err != nil {
		return err
	}
	live, err := client.NewWithWatch(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: scheme, Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("creating a client without a cache: %w", err)
	}
	resources, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("creating a discovery client: %w", err)
	}
	logger := mgr.GetLogger()
	held := &lock.Lock{
		Task: upgrade.Task(), Config: mgr.GetConfig(), Namespace: upgrade.LockNamespace, Self: lock.Self(), Ended: lock.Ended,
		Do:    func(ctx context.Context, _ string, request func(context.Context) error) error { return request(ctx) },
		Clock: clock.RealClock{},
		Say:   func(format string, args ...any) { logger.Info(fmt.Sprintf(format, args...)) },
	}
	if err := declaration.Setup(mgr, env.Namespace); err != nil {
		return err
	}
	return controller.Setup(ctx, mgr, controller.Options{
		Concurrency: f.concurrency,
		Filter:      watch.Filter(env.WatchFilter),
		Engine:      &engine.Engine{Client: live, Resources: resources, Hold: held.Hold, Timeout: f.timeout},
		Source: &source.Reader{
			Live: live, Known: distribution.Defaults(), Getenv: env.Getenv,
			Options: repository.Options{GitHubToken: env.Getenv("GITHUB_TOKEN")},
		},
	})
}
