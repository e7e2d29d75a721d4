package topology

import (
	"context"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// noneBlocks are Hooks whose extensions never block.
type noneBlocks struct{}

func (noneBlocks) Ask(context.Context, *clusterv1.Cluster, lifecycle.Call) (lifecycle.Answer, error) {
	return lifecycle.Answer{}, nil
}

// TestALeaderWithAStaleCacheKeepsPendingHooks lets another leader, whose cache has the Cluster as it was before the hooks of its upgrade
// became pending, or before others did, but has the upgraded control plane, reconcile it.
func TestALeaderWithAStaleCacheKeepsPendingHooks(t *testing.T) {
	const next, pending = "v1.31.0", "AfterClusterUpgrade,AfterControlPlaneUpgrade"
	tests := []struct {
		reason   string
		upgraded bool   // the workers, too
		cached   string // the hooks that are pending according to the cache
	}{
		{reason: "hooks that it does not know hold the workers"},
		{reason: "a hook that holds workers and is called again does not drop the others", cached: "AfterControlPlaneUpgrade"},
		{reason: "a hook that is called again in the end does not drop the others", upgraded: true, cached: "AfterClusterUpgrade"},
	}
	w := newWorld(t)
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	w.provisioned(c)
	changed(w, c, func(c *clusterv1.Cluster) { c.Spec.Topology.Version = next })
	w.reconciled(c)
	w.provisioned(c)
	for _, test := range tests {
		if test.upgraded {
			w.reconciled(c)
		}
		changed(w, c, func(c *clusterv1.Cluster) {
			c.Annotations = map[string]string{runtimev1.PendingHooksAnnotation: pending}
		})
		old := c.DeepCopy()
		old.Annotations[runtimev1.PendingHooksAnnotation] = test.cached
		workers := func() any { return fieldOf(w.one("MachineDeployment", "c-md-0", c), "spec.template.spec.version") }
		before := workers()
		other := w.stale(&frozen{cluster: old})
		other.control.Planner.Hooks = noneBlocks{}
		if _, err := other.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
			t.Fatal(err)
		}
		testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(c), c))
		w.expect(test.reason+": pending hooks", pending, c.Annotations[runtimev1.PendingHooksAnnotation])
		w.expect(test.reason+": version of the workers", before, workers())
	}
}
