package topology

import (
	"context"
	"errors"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/ssa"
	"sigs.k8s.io/cluster-api/provider/step"
)

// Applier applies objects as FieldManager, and only if that would change them.
type Applier interface {
	Comparer
	// Pending says whether Apply would send something.
	Pending(ctx context.Context, live, desired *unstructured.Unstructured, opts ...ssa.Option) (bool, error)
	Apply(ctx context.Context, live, desired *unstructured.Unstructured, opts ...ssa.Option) (*unstructured.Unstructured, bool, error)
}

// Controller reconciles Clusters that have a topology.
type Controller struct {
	step.Outside
	// Cache is what Planner reads from.
	Cache   client.Reader
	Planner *Planner
	Applier Applier
	// Watch makes sure that changes of the kinds of these objects reach the controller.
	Watch func(ctx context.Context, kinds []*unstructured.Unstructured) error
	// clean has the UIDs of Clusters of which nothing can be left over.
	clean sync.Map
	// serial applies objects one at a time: for tests that stop at every one of them.
	serial bool
}

// scope is one reconcile.
type scope struct {
	cluster *clusterv1.Cluster
	plan    *Plan
	done    outcome
	// unclean says that leftovers has to look again.
	unclean bool
	// stale says that the plan was made of something that has changed since.
	stale bool
}

func (s *scope) hasTopology() bool { return s.cluster.Spec.Topology != nil }

// deleted says that nothing is done any more: the Cluster deletes its objects.
func (c *Controller) deleted(_ context.Context, s *scope) (step.Result, error) {
	c.clean.Delete(s.cluster.UID)
	return step.Stop().Stating(condition.False(clusterv1.TopologyReconciledCondition, clusterv1.ConditionSeverityInfo, clusterv1.DeletedReason, "")), nil
}

// conclude announces what was done, and states how far it got.
func (c *Controller) conclude(ctx context.Context, s *scope, result step.Result, err error) (step.Result, error) {
	if s.cluster.DeletionTimestamp != nil || !s.hasTopology() {
		return result, err
	}
	c.remember(s, err)
	s.done.announce(ctx, s.cluster)
	if s.stale {
		return result, err
	}
	var notReady *ClassNotReconciledError
	if errors.As(err, &notReady) {
		condition.Set(s.cluster, condition.False(clusterv1.TopologyReconciledCondition, clusterv1.ConditionSeverityInfo,
			clusterv1.TopologyReconciledClusterClassNotReconciledReason, "%s", notReady.Error()))
		return step.Wait("ClusterClass " + notReady.Class + " to be reconciled"), nil
	}
	s.report(err)
	return result, err
}

// work is the step that works out what is to be done.
func (c *Controller) work(ctx context.Context, s *scope) (step.Result, error) {
	plan, err := c.Planner.Plan(ctx, s.cluster)
	if err != nil {
		return step.Done(), err
	}
	s.plan = plan
	return step.Done(), c.Watch(ctx, plan.Kinds)
}

// refer makes the Cluster find what is about to be made.
func (c *Controller) refer(_ context.Context, s *scope) (step.Result, error) {
	if s.cluster.Labels == nil {
		s.cluster.Labels = map[string]string{}
	}
	for key, value := range s.plan.Labels {
		s.cluster.Labels[key] = value
	}
	controllerutil.AddFinalizer(s.cluster, clusterv1.ClusterFinalizer)
	refer(&s.cluster.Spec.InfrastructureRef, s.plan.InfrastructureRef)
	refer(&s.cluster.Spec.ControlPlaneRef, s.plan.ControlPlaneRef)
	return step.Checkpoint(), nil
}

// refer changes only what identifies an object.
func refer(ref **corev1.ObjectReference, to *corev1.ObjectReference) {
	if *ref == nil {
		*ref = to
		return
	}
	(*ref).APIVersion, (*ref).Kind, (*ref).Name, (*ref).Namespace = to.APIVersion, to.Kind, to.Name, to.Namespace
}

// report states the condition.
func (s *scope) report(err error) {
	if err != nil {
		if !step.IsStale(err) {
			condition.Set(s.cluster, condition.False(clusterv1.TopologyReconciledCondition, clusterv1.ConditionSeverityError,
				clusterv1.TopologyReconcileFailedReason, "%s", err.Error()))
		}
		return
	}
	reason, message, waiting := s.plan.Versions.Waiting()
	if !waiting && len(s.plan.Waiting) > 0 {
		reason, message, waiting = clusterv1.TopologyReconciledMachineDeploymentsCreatePendingReason, waitingForPredecessor(s.plan.Waiting), true
	}
	if waiting {
		condition.Set(s.cluster, condition.False(clusterv1.TopologyReconciledCondition, clusterv1.ConditionSeverityInfo, reason, "%s", message))
		return
	}
	done := condition.True(clusterv1.TopologyReconciledCondition)
	done.Message = strings.Join(s.plan.Unattended, "; ")
	condition.Set(s.cluster, done)
}
