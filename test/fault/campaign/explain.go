package campaign

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/clusterctl/explain"
	"sigs.k8s.io/cluster-api/clusterctl/explain/gather"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// explain checks that `clusterctl explain` reports the cause that the scenario ends with, and nothing if the Cluster is healthy:
// whatever happened before must not leave a trace that looks like a cause.
func (r *Runner) explain(ctx context.Context, result *Result) error {
	if result.Scenario.IPAM || result.Scenario.Operator || result.Scenario.Deletes {
		return nil
	}
	cluster := types.NamespacedName{Namespace: result.Namespace, Name: scenario.ClusterName}
	input, err := gather.Read(ctx, r.World.Client, cluster, time.Now())
	if err != nil {
		return fmt.Errorf("reading what explains the Cluster: %w", err)
	}
	input.NoManagers = false // The managers may not elect leaders, and are processes of this machine, without Deployments.
	root := explain.Cause{}
	if causes := explain.Explain(input).Causes; len(causes) > 0 {
		root = causes[0]
	}
	if root.Reason != result.Scenario.Cause {
		result.violate("the Cluster is explained",
			fmt.Sprintf("root cause %q of %s: %s; want %q", root.Reason, root.Object, root.Message, result.Scenario.Cause))
	}
	return nil
}
