package topology

import (
	"context"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/sdk/ssa"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Applier applies objects as FieldManager, and only if that would change them.
type Applier interface {
	Comparer
	// Pending reports whether Apply would send a request.
	Pending(ctx context.Context, live, desired *unstructured.Unstructured, opts ...ssa.Option) (bool, error)
	// Apply returns the resulting object, and whether it changed.
	Apply(ctx context.Context, live, desired *unstructured.Unstructured, opts ...ssa.Option) (*unstructured.Unstructured, bool, error)
}

// Controller reconciles Clusters that have a topology.
type Controller struct {
	step.Outside
	// Cache is what Planner reads from.
	Cache   client.Reader
	Planner *Planner
	Applier Applier
	// Watch starts watching the kinds of these objects, unless they are watched already.
	Watch func(ctx context.Context, kinds []*unstructured.Unstructured) error
	// hooks is Planner.Hooks, nil without the feature gate RuntimeSDK.
	hooks *lifecycleHooks
	// clean holds the UIDs of Clusters that have no leftover templates: see leftovers.
	clean sync.Map
	// serial makes apply send one request at a time, for tests that interrupt it after each of them.
	serial bool
}

// scope is the state of one reconcile.
type scope struct {
	cluster *clusterv1.Cluster
	plan    *Plan
	done    outcome
	// recheck is set if templates may be left over that cannot be deleted yet: leftovers has to run again.
	recheck bool
	// stale is set if the plan was based on an outdated Cluster or ClusterClass.
	stale bool
}

func (s *scope) hasTopology() bool { return s.cluster.Spec.Topology != nil }

// deleted only sets the condition: the Cluster controller deletes the objects.
func (c *Controller) deleted(_ context.Context, s *scope) (step.Result, error) {
	c.clean.Delete(s.cluster.UID)
	if c.hooks != nil {
		c.hooks.forget(s.cluster.UID)
	}
	return step.Stop().WithConditions(deleted(clusterv1.ConditionSeverityInfo, "")), nil
}

// work computes the plan, and watches the kinds of its objects.
func (c *Controller) work(ctx context.Context, s *scope) (step.Result, error) {
	plan, err := c.Planner.Plan(ctx, s.cluster)
	if err != nil {
		return step.Done(), err
	}
	s.plan = plan
	if plan.Hooks.HoldsCreation() {
		return waitForHooks(plan.Hooks), nil
	}
	return step.Done(), c.Watch(ctx, plan.Kinds)
}

// refer writes labels, finalizer and references into the Cluster before the objects are created, so that its deletion
// finds all of them, and which hooks are to be called before what makes them pending is applied.
func (c *Controller) refer(_ context.Context, s *scope) (step.Result, error) {
	if s.cluster.Labels == nil {
		s.cluster.Labels = map[string]string{}
	}
	maps.Copy(s.cluster.Labels, s.plan.Labels)
	controllerutil.AddFinalizer(s.cluster, clusterv1.ClusterFinalizer)
	setReference(&s.cluster.Spec.InfrastructureRef, s.plan.InfrastructureRef)
	setReference(&s.cluster.Spec.ControlPlaneRef, s.plan.ControlPlaneRef)
	lifecycle.MarkCalled(s.cluster, s.plan.Hooks.Called...)
	lifecycle.MarkPending(s.cluster, s.plan.Hooks.Pending...)
	return step.Checkpoint(), nil
}

// setReference makes a reference point to an object. Fields that do not identify an object, such as the UID, are kept.
func setReference(ref **corev1.ObjectReference, to *corev1.ObjectReference) {
	if *ref == nil {
		*ref = to
		return
	}
	(*ref).APIVersion, (*ref).Kind, (*ref).Name, (*ref).Namespace = to.APIVersion, to.Kind, to.Name, to.Namespace
}
