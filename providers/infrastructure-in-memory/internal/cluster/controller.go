package cluster

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/lab"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects of this manager.
	Filter watch.Filter
	Lab    *lab.Lab
}

// Controller reconciles InMemoryClusters.
type Controller struct {
	step.Clients
	lab *lab.Lab
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{Clients: step.ClientsOf(mgr, "inmemorycluster-controller", o.Filter), lab: o.Lab}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	return step.Add(ctx, mgr, c.Clients, declared)
}

// declared returns the declaration of the controller. It ignores externally managed InMemoryClusters.
func (c *Controller) declared() step.Controller[*inmemoryv1.InMemoryCluster, *inmemoryv1.InMemoryCluster] {
	unpaused := watch.Updated(func(before, after *clusterv1.Cluster) bool {
		return before.Spec.Paused && !after.Spec.Paused
	})
	ours := func(obj *inmemoryv1.InMemoryCluster) bool {
		_, managed := obj.Annotations[clusterv1.ManagedByAnnotation]
		return !managed
	}
	return step.Controller[*inmemoryv1.InMemoryCluster, *inmemoryv1.InMemoryCluster]{
		Name: "inmemorycluster",
		New:  func() *inmemoryv1.InMemoryCluster { return &inmemoryv1.InMemoryCluster{} },
		Watches: []step.Watch{
			step.Mapped(&clusterv1.Cluster{}, watch.Infrastructure("InMemoryCluster"), unpaused),
			step.Handled(&inmemoryv1.InMemoryCluster{}, handler.Funcs{DeleteFunc: c.gone}),
		},
		Paused: ownership.PausedByCluster[*inmemoryv1.InMemoryCluster](c.Client),
		Scope:  step.Self[*inmemoryv1.InMemoryCluster],
		Steps: []step.Step[*inmemoryv1.InMemoryCluster]{
			step.When(ours, step.Do("open", c.open).Sets(clusterv1.ReadyCondition)),
			step.When(ours, step.Do("host", c.host)),
		},
		Deletion: []step.Step[*inmemoryv1.InMemoryCluster]{
			step.When(ours, step.Do("close", c.close)),
		},
	}
}

func (c *Controller) open(ctx context.Context, obj *inmemoryv1.InMemoryCluster) (step.Result, error) {
	cluster, err := ownership.ClusterOf(ctx, c.Client, obj)
	if err != nil {
		return step.Done(), err
	}
	if cluster == nil || !ownership.Has(obj, cluster) {
		return step.Wait("an owner reference to a Cluster"), nil
	}
	if ref := cluster.Spec.InfrastructureRef; ref != nil && (ref.Kind != "InMemoryCluster" || ref.Name != obj.Name) {
		return step.Wait("a reference from its Cluster"), nil // The Cluster references another one.
	}
	key := client.ObjectKeyFromObject(cluster)
	c.lab.Inherit(obj, cluster)
	group, _, err := c.lab.Open(ctx, obj, key)
	if err != nil {
		failed := error(&step.Error{Reason: inmemoryv1.EndpointFailedReason, Err: err})
		if errors.Is(err, lab.ErrInvalidEndpoint) {
			failed = step.Terminal(failed)
		}
		return step.Done(), failed
	}
	if err := setFaults(group, obj); err != nil {
		return step.Done(), err
	}
	controllerutil.AddFinalizer(obj, inmemoryv1.ClusterFinalizer)
	if obj.Annotations == nil {
		obj.Annotations = map[string]string{}
	}
	obj.Annotations[inmemoryv1.ListenerAnnotationName] = key.String()
	obj.Status.Ready, obj.Status.Port = true, obj.Spec.ControlPlaneEndpoint.Port
	obj.Status.FailureDomains = obj.Spec.FailureDomains
	return step.Done(), nil
}

// gone shuts down the workload cluster of an object whose finalizer was removed by others: it is not reconciled any more.
func (c *Controller) gone(ctx context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if err := c.lab.Drop(e.Object.GetUID()); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot shut down the workload cluster of a deleted InMemoryCluster", "InMemoryCluster", client.ObjectKeyFromObject(e.Object))
	}
}

// setFaults sets the faults of the annotation, and removes them if there is none.
func setFaults(group *cloud.Group, obj *inmemoryv1.InMemoryCluster) error {
	faults, err := lab.Faults(obj)
	if err != nil {
		return step.Terminal(err)
	}
	return group.SetFaults(faults)
}

// close shuts down the workload cluster. The Cluster may not exist any more, so its name is from the annotation, or, if that
// was never written, from the label. Users can write both, so the lab checks the UID.
func (c *Controller) close(_ context.Context, obj *inmemoryv1.InMemoryCluster) (step.Result, error) {
	key := types.NamespacedName{Namespace: obj.Namespace, Name: obj.Labels[clusterv1.ClusterNameLabel]}
	if _, name, ok := strings.Cut(obj.Annotations[inmemoryv1.ListenerAnnotationName], "/"); ok {
		key.Name = name
	}
	if err := c.lab.Close(key, obj.UID); err != nil {
		return step.Done(), err
	}
	controllerutil.RemoveFinalizer(obj, inmemoryv1.ClusterFinalizer)
	return step.Stop(), nil
}
