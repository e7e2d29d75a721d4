package machinedeployment

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/machinedeployment/rollout"
	"sigs.k8s.io/cluster-api/internal/condition"
	"sigs.k8s.io/cluster-api/internal/contract"
	"sigs.k8s.io/cluster-api/internal/external"
	"sigs.k8s.io/cluster-api/internal/ownership"
	"sigs.k8s.io/cluster-api/internal/ssa"
	"sigs.k8s.io/cluster-api/internal/step"
	"sigs.k8s.io/cluster-api/internal/watchfilter"
)

const (
	machineDeploymentKind = "MachineDeployment"
	machineSetKind        = "MachineSet"
	// fieldManager owns what a MachineDeployment applies to its MachineSets.
	fieldManager = "capi-machinedeployment"
)

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter drops objects that another manager is responsible for. Nil: none.
	Filter predicate.Predicate
}

// applier is the part of an ssa.Applier that the controller needs.
type applier interface {
	apply(ctx context.Context, live, desired *clusterv1.MachineSet) (*clusterv1.MachineSet, bool, error)
}

// Controller reconciles MachineDeployments.
type Controller struct {
	step.Outside
	external external.Reader
	sets     applier
}

// conditions declares what feeds a MachineDeployment's Ready.
func conditions() condition.Kind {
	return condition.Kind{Ready: []clusterv1.ConditionType{clusterv1.MachineDeploymentAvailableCondition}}
}

// Setup adds the controller to a manager.
func Setup(_ context.Context, mgr ctrl.Manager, o Options) error {
	if o.Filter == nil {
		o.Filter = predicate.Funcs{}
	}
	c := &Controller{Outside: step.From(mgr, "machinedeployment-controller")}
	c.external = external.Reader{Client: c.Client, Versions: contract.APIVersions{Reader: c.Client}}
	c.sets = serverSide{ssa.NewApplier(c.Client, ssa.NewSchemas(ssa.Cluster{Metadata: c.Client, Live: c.Live}), fieldManager)}
	changed := builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})
	err := ctrl.NewControllerManagedBy(mgr).Named("machinedeployment").
		For(&clusterv1.MachineDeployment{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}, o.Filter)).
		Owns(&clusterv1.MachineSet{}, changed).
		Watches(&clusterv1.MachineSet{}, handler.EnqueueRequestsFromMapFunc(c.forOrphan), builder.WithPredicates(orphans())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.ofCluster), builder.WithPredicates(pauseChanged())).
		WithOptions(step.Options(o.Concurrency)).
		Complete(c.runner())
	if err != nil {
		return fmt.Errorf("setting up the machine deployment controller: %w", err)
	}
	return nil
}

func (c *Controller) runner() *step.Runner[*clusterv1.MachineDeployment] {
	return &step.Runner[*clusterv1.MachineDeployment]{
		Outside:    c.Outside,
		New:        func() *clusterv1.MachineDeployment { return &clusterv1.MachineDeployment{} },
		Conditions: conditions(),
		Paused:     ownership.PausedByCluster[*clusterv1.MachineDeployment](c.Client),
		Do:         c.Reconcile,
		Observed:   func(md *clusterv1.MachineDeployment, g int64) { md.Status.ObservedGeneration = g },
	}
}

// scope is what the steps work on.
type scope struct {
	deployment *clusterv1.MachineDeployment
	cluster    *clusterv1.Cluster
	// sets are the MachineSets that are not being deleted, oldest first. Filled by collect, and brought up to
	// date by write.
	sets []*clusterv1.MachineSet
	// known is whether sets is filled.
	known bool
	// current is the one of sets that has the deployment's template; nil if there is none.
	current *clusterv1.MachineSet
	// fresh is how the current set is to be called when it has to be made.
	fresh identity
	// surge and unavailable are the resolved bounds of the strategy; zero for OnDelete.
	surge, unavailable int32
	targets            rollout.Targets
}

// old are the sets of former templates, oldest first.
func (s *scope) old() []*clusterv1.MachineSet {
	var out []*clusterv1.MachineSet
	for _, set := range s.sets {
		if set != s.current {
			out = append(out, set)
		}
	}
	return out
}

// Reconcile moves the MachineSets of a MachineDeployment one step toward what it asks for.
func (c *Controller) Reconcile(ctx context.Context, md *clusterv1.MachineDeployment) (step.Result, error) {
	if !md.DeletionTimestamp.IsZero() {
		return step.Stop(), nil // the garbage collector takes the MachineSets, in the foreground if asked to
	}
	if md.Spec.Replicas == nil {
		return step.Result{}, step.Terminal(fmt.Errorf("MachineDeployment %s has no spec.replicas: its webhook defaults it, write the object again", md.Name))
	}
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: md.Namespace, Name: md.Spec.ClusterName}
	if err := c.Client.Get(ctx, key, cluster); err != nil {
		return step.Result{}, fmt.Errorf("reading Cluster %s, which spec.clusterName names: %w", key, err)
	}
	s := &scope{deployment: md, cluster: cluster}
	result, err := step.Run(ctx, s, c.adopt, c.collect, c.choose, c.plan, c.write, c.clean)
	err = errors.Join(err, s.status())
	if err != nil {
		warn(ctx, err, "ReconcileError", "%v", err)
	}
	return result, err
}

// ofCluster maps a Cluster to its MachineDeployments.
func (c *Controller) ofCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return c.deployments(ctx, obj.GetNamespace(), obj.GetName(), func(*clusterv1.MachineDeployment) bool { return true })
}

// forOrphan maps a MachineSet without controller to the MachineDeployments whose selector it matches.
func (c *Controller) forOrphan(ctx context.Context, obj client.Object) []reconcile.Request {
	set, ok := obj.(*clusterv1.MachineSet)
	if !ok {
		return nil
	}
	return c.deployments(ctx, set.Namespace, set.Spec.ClusterName, func(md *clusterv1.MachineDeployment) bool {
		selector, err := metav1.LabelSelectorAsSelector(&md.Spec.Selector)
		return err == nil && !selector.Empty() && selector.Matches(labels.Set(set.Labels))
	})
}

func (c *Controller) deployments(ctx context.Context, namespace, cluster string, matters func(*clusterv1.MachineDeployment) bool) []reconcile.Request {
	list := &clusterv1.MachineDeploymentList{}
	if err := c.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list MachineDeployments", "Cluster", cluster)
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if matters(&list.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

func orphans() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return metav1.GetControllerOf(obj) == nil && obj.GetDeletionTimestamp().IsZero()
	})
}

// pauseChanged lets a Cluster through that was paused or unpaused.
func pauseChanged() predicate.Predicate {
	return watchfilter.Updated(func(before, after *clusterv1.Cluster) bool {
		return before.Spec.Paused != after.Spec.Paused
	})
}
