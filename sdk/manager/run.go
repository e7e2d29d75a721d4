package manager

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	goruntime "runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"sigs.k8s.io/cluster-api/sdk/internal/tenure"
	"sigs.k8s.io/cluster-api/sdk/version"
)

// Run runs a component until ctx is done, which is not an error, or until a part that it requires fails.
// Errors are one sentence for the user, with the flag if it is invalid. --help and --version
// print and return.
func Run(ctx context.Context, c Component, args []string, h Host) error {
	c, h = c.withDefaults(), h.withDefaults()
	o, groups, err := parse(c, args)
	if err != nil {
		return err
	}
	switch {
	case o.help:
		printHelp(h.Stdout, c, groups)
		return nil
	case o.version:
		printVersion(h.Stdout, c)
		return nil
	}
	r := &run{component: c, options: o, host: h, log: h.Logger}
	if err := r.prepareProcess(); err != nil {
		return err
	}
	return r.run(ctx)
}

// prepareProcess sets up what is global in a process, unless it is shared.
func (r *run) prepareProcess() error {
	if !r.host.shared() {
		if err := logsapi.ValidateAndApply(r.options.logging, nil); err != nil {
			return fmt.Errorf("setting up logging: %w", err)
		}
		logs.InitLogs()
		ctrl.SetLogger(klog.Background())
		if r.options.contentionProfiling {
			goruntime.SetBlockProfileRate(1)
		}
	}
	if r.log.IsZero() {
		r.log = klog.Background()
	}
	return nil
}

// warn logs which of the flags and feature gates that were set are deprecated or have no effect.
func (r *run) warn() {
	for _, flag := range slices.Sorted(maps.Keys(r.options.deprecated)) {
		r.log.Info("Deprecated flag", "flag", flag, "advice", r.options.deprecated[flag])
	}
	for _, gate := range r.component.FeatureGates.Ineffective() {
		r.log.Info("Feature gate without effect", "gate", gate, "advice", "remove it from --feature-gates: the feature cannot be turned off")
	}
}

func (r *run) run(ctx context.Context) error {
	defer r.close()
	r.warn()
	if err := r.connect(ctx); err != nil {
		return err
	}
	r.log.Info("Starting", "component", r.component.Name, "version", version.Get().GitVersion,
		"kubernetes", r.kubernetes.String(), "namespace", r.namespace)
	source, server, err := r.webhooks()
	if err != nil {
		return err
	}
	built, err := r.build(server)
	if err != nil {
		return err
	}
	mgr := newCheckedManager(built)
	if err := addWebhookChecks(mgr, server, source); err != nil {
		return err
	}
	if err := r.addEndpoints(mgr); err != nil {
		return err
	}
	if err := mgr.Add(newMemoryReturner()); err != nil {
		return err
	}
	required, err := schemeOf(r.component.AddToScheme...)
	if err != nil {
		return err
	}
	awaitServed(ctx, r.log, required, mgr.GetRESTMapper())
	if err := r.setup(ctrl.LoggerInto(ctx, r.log), mgr); err != nil {
		return fmt.Errorf("setting up: %w", err)
	}
	mgr.started.Store(true)
	return start(ctrl.LoggerInto(ctx, r.log), mgr, source, r.tenure)
}

// setup adds the controllers to the manager, except for what the installation does not allow.
func (r *run) setup(ctx context.Context, mgr ctrl.Manager) error {
	n, err := newNeeds(mgr, r.options.watchNamespace, r.log)
	if err != nil {
		return err
	}
	records, err := n.recordsEvents(ctx)
	if err != nil {
		return err
	}
	if !records {
		mgr = silentManager{mgr}
	}
	if err := r.component.Setup(ctx, mgr, r.environment(n)); err != nil {
		return err
	}
	if err := r.addMigrator(ctx, mgr, n); err != nil {
		return err
	}
	return mgr.Add(n)
}

// connect configures the connection to the API server, checks its version, and detects the namespace.
func (r *run) connect(ctx context.Context) error {
	var err error
	if r.config, err = connection(r.component, r.options, r.host); err != nil {
		return err
	}
	if r.namespace, r.inCluster, err = detectNamespace(r.host, podNamespaceFile); err != nil {
		return err
	}
	if !r.inCluster {
		r.namespace = r.component.Namespace
	}
	if r.kubernetes, err = kubernetesVersion(ctx, r.config); err != nil {
		return err
	}
	return checkKubernetesVersion(r.kubernetes, r.component.FeatureGates)
}

// addWebhookChecks adds health checks, so that no requests are sent that would fail. Liveness requires less: a restart does not help
// if permissions are missing.
func addWebhookChecks(mgr ctrl.Manager, server webhook.Server, source certificateSource) error {
	if server == nil {
		return nil
	}
	started := server.StartedChecker()
	if err := mgr.AddHealthzCheck("webhook", started); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("webhook", func(request *http.Request) error {
		if err := started(request); err != nil {
			return err
		}
		return source.Ready()
	})
}

// start runs the manager and the certificate source, until one of them fails or the process is no longer the leader. source is nil
// without webhooks.
func start(ctx context.Context, mgr ctrl.Manager, source certificateSource, leader *tenure.Tenure) error {
	group, ctx := errgroup.WithContext(ctx)
	if source != nil {
		// Not added to the manager, which would start it after its caches have synced: syncing
		// may require that conversion webhooks are trusted.
		group.Go(func() error { return source.Start(ctx) })
	}
	group.Go(func() error { return leader.Await(ctx) })
	group.Go(func() error { return mgr.Start(ctx) })
	return group.Wait()
}

// close closes the listeners of servers that have not been started; all others are closed already.
func (r *run) close() {
	for _, listener := range r.listeners {
		_ = listener.Close()
	}
}
