// Package operator is the operator: it installs, changes, upgrades and deletes the providers of its management cluster as objects
// declare them.
package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
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
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/lock"
	"sigs.k8s.io/cluster-api/packages/replace"
	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/providers/operator/internal/controller"
	"sigs.k8s.io/cluster-api/providers/operator/internal/engine"
	"sigs.k8s.io/cluster-api/providers/operator/internal/helm"
	"sigs.k8s.io/cluster-api/providers/operator/internal/source"
	"sigs.k8s.io/cluster-api/providers/operator/internal/webhook"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/sdk/version"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// flags are the flags of this component.
type flags struct {
	concurrency int
	timeout     time.Duration
	config      string
}

func (f *flags) register(fs *pflag.FlagSet) {
	fs.IntVar(&f.concurrency, "concurrency", 10, "Number of providers of each type to process at the same time")
	fs.DurationVar(&f.timeout, "provider-timeout", 5*time.Minute,
		"How long each Deployment of a changed provider may take to become available before the change is undone")
	fs.StringVar(&f.config, "config", "/config/clusterctl.yaml", "File with a configuration of clusterctl: "+
		"locations of providers, overrides of images and values of variables for all providers. It need not exist")
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

// cacheOf limits the cache to what providers consist of.
func cacheOf(o *cache.Options) {
	o.DefaultTransform = cache.TransformStripManagedFields()
	requirement, err := labels.NewRequirement(clusterv1.ProviderNameLabel, selection.Exists, nil)
	if err != nil {
		panic(err) // The label is a constant.
	}
	if o.ByObject == nil {
		o.ByObject = map[client.Object]cache.ByObject{}
	}
	ofProviders := labels.NewSelector().Add(*requirement)
	o.ByObject[&appsv1.Deployment{}] = cache.ByObject{Label: ofProviders}
	for _, kind := range controller.CachedKinds() {
		o.ByObject[controller.CachedMetadata(kind)] = cache.ByObject{Label: ofProviders, Transform: controller.Lean}
	}
}

func controllers(ctx context.Context, mgr ctrl.Manager, env manager.Environment, f *flags) error {
	// The inventory is not in the manager's scheme: the operator itself installs its definition, so that the manager must not wait for it.
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), operatorv1.AddToScheme(scheme), clusterctlv1.AddToScheme(scheme)); err != nil {
		return err
	}
	live, err := client.NewWithWatch(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: scheme, Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return fmt.Errorf("creating a client without a cache: %w", err)
	}
	resources, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("creating a discovery client: %w", err)
	}
	logger := mgr.GetLogger()
	held := &lock.Lock{
		Task: replace.Task(), Config: mgr.GetConfig(), Namespace: replace.LockNamespace, Self: lock.Self(), Ended: lock.Ended,
		Clock: clock.RealClock{},
		Say:   func(format string, args ...any) { logger.Info(fmt.Sprintf(format, args...)) },
	}
	filter := watch.Filter(env.WatchFilter)
	if err := helm.Setup(ctx, mgr, helm.Options{Namespace: env.Namespace, Filter: filter}); err != nil {
		return err
	}
	return controller.Setup(ctx, mgr, controller.Options{
		Concurrency: f.concurrency,
		Filter:      filter,
		Engine:      &engine.Engine{Client: live, Resources: resources, Hold: held.Hold, Timeout: f.timeout},
		Source: &source.Reader{
			Live: live, Clock: clock.RealClock{},
			Options: repository.Options{SingleAttempt: true, Advice: source.Advice(), GoProxy: goProxy(env.Getenv, logger)},
			Config: source.ConfigFile(f.config, func(name string) (string, bool) {
				value := env.Getenv(name)
				return value, value != ""
			}),
		},
	})
}

// goProxy returns the Go module proxy that lists versions of GitHub repositories, as for clusterctl: GitHub's API accepts few requests
// without a token. An operator that runs beside other programs must not fail because of a variable that is for Go.
func goProxy(getenv func(string) string, logger logr.Logger) string {
	proxy, err := repository.GoProxyURL(getenv(config.GoProxyVariable), version.GoProxy())
	if err != nil {
		logger.Info("Versions are listed by GitHub's API, because there is no Go module proxy", "reason", err.Error())
	}
	return proxy
}
