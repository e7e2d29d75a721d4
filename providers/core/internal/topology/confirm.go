package topology

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// confirm waits if the plan is based on an outdated Cluster or ClusterClass and would change anything. The cache may be a
// minute old, and a previous leader may have acted on newer versions: going back to an old version would replace Machines,
// delete workers that were added since, and create again those that were deleted, even for a Cluster that is being deleted.
//
// It costs two reads per reconcile that changes objects, and none otherwise. The creation of a Cluster's first objects needs
// none: the write of their references fails if the Cluster has changed.
func (c *Controller) confirm(ctx context.Context, s *scope) (step.Result, error) {
	needed, err := c.needsConfirmation(ctx, s)
	if !needed || err != nil {
		return step.Done(), err
	}
	return c.waitIfOutdated(ctx, s)
}

// waitIfOutdated compares what the plan is based on with the API server.
func (c *Controller) waitIfOutdated(ctx context.Context, s *scope) (step.Result, error) {
	result, err := c.Latest(ctx,
		step.Reread(s.cluster, &clusterv1.Cluster{}, sameCluster), step.Reread(s.plan.Class, &clusterv1.ClusterClass{}, sameClass))
	s.stale = s.stale || result.Ends()
	return result, err
}

// needsConfirmation reports whether the following steps would change anything without a write to the Cluster that fails if it
// is outdated.
func (c *Controller) needsConfirmation(ctx context.Context, s *scope) (bool, error) {
	spec := &s.cluster.Spec
	if len(s.plan.Deletions) > 0 {
		return true, nil
	}
	// Another client may have set the references since. A write that also adds the finalizer needs no confirmation: it
	// fails on a newer resource version.
	if !controllerutil.ContainsFinalizer(s.cluster, clusterv1.ClusterFinalizer) {
		return c.changesObjects(ctx, s.plan, false)
	}
	if !spec.InfrastructureRef.IsDefined() || !spec.ControlPlaneRef.IsDefined() || len(s.plan.Hooks.Pending)+len(s.plan.Hooks.Called) > 0 ||
		s.plan.Versions.Step != "" && s.plan.Versions.Step != lifecycle.Step(s.cluster) {
		return true, nil
	}
	return c.changesObjects(ctx, s.plan, true)
}

// changesObjects reports whether carrying the plan out would send a request for an object that exists, or, if created is set, for
// any.
func (c *Controller) changesObjects(ctx context.Context, planned *plan.Plan, created bool) (bool, error) {
	for _, stage := range planned.Stages {
		for _, change := range stage {
			if change.Kept {
				continue
			}
			if change.Live == nil {
				if created {
					return true, nil
				}
				continue
			}
			if pending, err := c.Applier.Pending(ctx, change.Live, change.Desired, change.Options...); pending || err != nil {
				return pending, err
			}
		}
	}
	return false, nil
}

// sameCluster reports whether a plan that is based on one version of a Cluster is valid for a later one. Without the hooks that
// another leader has recorded as pending, workers would be upgraded too early; and the record, which is written as a whole, would be lost.
func sameCluster(live, planned *clusterv1.Cluster) bool {
	was, is := &planned.Spec, &live.Spec
	return sameAnnotation(live, planned, runtimev1.PendingHooksAnnotation) &&
		sameAnnotation(live, planned, clusterv1.ClusterTopologyUpgradeStepAnnotation) &&
		sameAnnotation(live, planned, conversion.OlderVersionAnnotation) && // It has the sources of variables.
		equality.Semantic.DeepEqual(was.Topology, is.Topology) &&
		equality.Semantic.DeepEqual(was.ClusterNetwork, is.ClusterNetwork) &&
		equality.Semantic.DeepEqual(was.InfrastructureRef, is.InfrastructureRef) &&
		equality.Semantic.DeepEqual(was.ControlPlaneRef, is.ControlPlaneRef)
}

func sameAnnotation(a, b *clusterv1.Cluster, name string) bool {
	return a.Annotations[name] == b.Annotations[name]
}

func sameClass(live, planned *clusterv1.ClusterClass) bool {
	return live.Generation == planned.Generation
}
