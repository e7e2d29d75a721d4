package helm

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controller.
type Options struct {
	// Namespace is the operator's own. Only its ConfigMaps count: who may write there is an administrator of the management cluster.
	Namespace string
	// Filter selects the ConfigMaps that this manager reconciles.
	Filter watch.Filter
}

// Controller reconciles ConfigMaps with declarations.
type Controller struct{ step.Clients }

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	// The manager's own cache has the metadata of other ConfigMaps.
	own, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces:    map[string]cache.Config{o.Namespace: {}},
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{operatorv1.DeclarationsLabel: ""}),
	})
	if err != nil {
		return fmt.Errorf("creating a cache of ConfigMaps: %w", err)
	}
	if err := mgr.Add(own); err != nil {
		return err
	}
	c := &Controller{step.ClientsOf(mgr, "declaration-controller", o.Filter)}
	declared := c.declared()
	declared.Cache = own
	return step.Add(ctx, mgr, c.Clients, declared)
}

// declared returns the declaration of the controller, without its cache.
func (c *Controller) declared() step.Controller[*corev1.ConfigMap, *corev1.ConfigMap] {
	return step.Controller[*corev1.ConfigMap, *corev1.ConfigMap]{
		Name:       "declaration",
		New:        func() *corev1.ConfigMap { return &corev1.ConfigMap{} },
		Scope:      step.Self[*corev1.ConfigMap],
		Steps:      []step.Step[*corev1.ConfigMap]{step.Do("apply", c.apply)},
		ErrorEvent: "NotDeclared",
	}
}
