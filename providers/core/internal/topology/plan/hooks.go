package plan

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
)

// hookCalls calls the lifecycle hooks that come before a part of a plan, and collects the outcome. Without hooks, it does nothing.
type hookCalls struct {
	hooks   Hooks
	cluster *clusterv1.Cluster
	outcome lifecycle.Outcome
}

// call reports whether a hook blocks.
func (h *hookCalls) call(ctx context.Context, call lifecycle.Call) (blocks bool, err error) {
	answer, err := h.hooks.Ask(ctx, h.cluster, call)
	if err != nil {
		return false, err
	}
	return h.outcome.Record(call.Hook, answer), nil
}

// beforeCreation calls the hook that comes before the first object is created.
func (h *hookCalls) beforeCreation(ctx context.Context) error {
	call, due := lifecycle.BeforeCreate(h.cluster)
	if h.hooks == nil || !due {
		return nil
	}
	blocks, err := h.call(ctx, call)
	if err == nil && !blocks {
		h.outcome.Pending = append(h.outcome.Pending, lifecycle.AfterControlPlaneInitialized)
	}
	return err
}

// waitForCompletion reports whether a hook waits for the end of an upgrade.
func (h *hookCalls) waitForCompletion() bool {
	return h.hooks != nil && lifecycle.IsPending(h.cluster, lifecycle.AfterClusterUpgrade)
}

// versions computes the versions, and calls the hooks that come before a version is given to the control plane or to workers.
func (h *hookCalls) versions(ctx context.Context, in upgrade.Input) (upgrade.Plan, error) {
	if h.hooks == nil {
		return upgrade.Compute(in), nil
	}
	if call, due := lifecycle.BeforeWorkers(h.cluster, in); due {
		blocks, err := h.call(ctx, call)
		if err != nil {
			return upgrade.Plan{}, err
		}
		in.WorkersHeld = blocks
		if !blocks {
			h.outcome.Called = append(h.outcome.Called, call.Hook)
		}
	}
	if call, due := lifecycle.BeforeUpgrade(in, upgrade.Compute(in)); due {
		blocks, err := h.call(ctx, call)
		if err != nil {
			return upgrade.Plan{}, err
		}
		in.ControlPlaneHeld = blocks
		if !blocks {
			h.outcome.Pending = append(h.outcome.Pending, lifecycle.AfterControlPlaneUpgrade, lifecycle.AfterClusterUpgrade)
		}
	}
	return upgrade.Compute(in), nil
}
