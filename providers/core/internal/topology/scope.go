package topology

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/sdk/ssa"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Applier applies objects as plan.FieldManager, and only if that would change them.
type Applier interface {
	plan.Comparer
	// Pending reports whether Apply would send a request.
	Pending(ctx context.Context, live, desired *unstructured.Unstructured, opts ...ssa.Option) (bool, error)
	// Apply returns the resulting object, and whether it changed.
	Apply(ctx context.Context, live, desired *unstructured.Unstructured, opts ...ssa.Option) (*unstructured.Unstructured, bool, error)
}

// Controller reconciles Clusters that have a topology.
type Controller struct {
	step.Clients
	// Cache is what Planner reads from.
	Cache   client.Reader
	Planner *plan.Planner
	Applier Applier
	// Watch starts watching the kinds of these objects, unless they are watched already.
	Watch func(ctx context.Context, kinds []*unstructured.Unstructured) error
	// WatchClass starts watching a class that the manager's cache does not have, before it is read.
	WatchClass func(ctx context.Context, class client.ObjectKey) error
	// hooks is Planner.Hooks, nil without the feature gate RuntimeSDK.
	hooks *lifecycleHooks
	// clean holds the UIDs of Clusters that have no leftover templates: see leftovers.
	clean sync.Map
	// concurrently runs functions at the same time, and waits for them.
	concurrently func(functions []func())
}

// scope is the state of one reconcile.
type scope struct {
	cluster *clusterv1.Cluster
	plan    *plan.Plan
	done    outcome
	// recheck is set if templates may be left over that cannot be deleted yet: leftovers has to run again.
	recheck bool
	// stale is set if the plan was based on an outdated Cluster or ClusterClass.
	stale bool
}

func (s *scope) hasTopology() bool { return s.cluster.Spec.Topology.IsDefined() }

// waitForHooks waits until the first of the hooks that block has to be called again.
func waitForHooks(o lifecycle.Outcome) step.Result {
	if len(o.Blocking) == 0 {
		return step.Done()
	}
	return step.WaitAtMost(o.RetryAfter(), o.Message())
}

// waitForDiscovery waits for an event of an ExtensionConfig: see ofExtension.
func waitForDiscovery(err *extension.NotReadyError) step.Result {
	return step.Wait("ExtensionConfig " + err.Config + " to be discovered")
}

// waitForTurn waits until the server of an extension is less busy.
func waitForTurn(err *extension.BusyError) step.Result {
	return step.WaitAtMost(err.RetryAfter(), "an earlier call of the server of extension "+err.Handler+" to end")
}
