package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// workers is how many Deployments are reconciled in parallel. Starting and stopping do not block a worker.
const workers = 4

// Run hosts components until the context ends. It returns when every component has stopped.
func Run(ctx context.Context, o Options) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("create the host's scheme: %w", err)
	}
	mgr, err := ctrl.NewManager(o.Config, ctrl.Options{
		Scheme:  scheme,
		Logger:  o.Logger,
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		// Controller names must be unique per process, which runs other managers.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return fmt.Errorf("create the host's manager: %w", err)
	}
	clientset, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return fmt.Errorf("create the host's client: %w", err)
	}
	h := &host{
		Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader(), kubernetes: clientset,
		recorder: mgr.GetEventRecorder("capi"), changes: make(chan event.GenericEvent, 64),
		running: ctx, instances: map[types.NamespacedName][]*instance{},
	}
	if err := h.setup(ctx, mgr); err != nil {
		return err
	}
	err = mgr.Start(ctx)
	h.wait()
	return err
}

// setup registers the controller and the proxy.
func (h *host) setup(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Service{}, clusterIPIndex, clusterIPs); err != nil {
		return fmt.Errorf("index Services by address: %w", err)
	}
	err := builder.ControllerManagedBy(mgr).Named("host").
		For(&appsv1.Deployment{}, builder.WithPredicates(h.orphaning())).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(h.neighbors)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(h.neighbors)).
		WatchesRawSource(source.Channel(h.changes, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(h)
	if err != nil {
		return fmt.Errorf("set up the host's controller: %w", err)
	}
	return mgr.Add(&proxy{host: h, listener: h.Egress})
}

// wait returns when all instances have stopped.
func (h *host) wait() {
	h.mu.Lock()
	instances := slices.Concat(slices.Collect(maps.Values(h.instances))...)
	h.mu.Unlock()
	for _, i := range instances {
		i.cancel()
	}
	for _, i := range instances {
		<-i.ended
	}
}
