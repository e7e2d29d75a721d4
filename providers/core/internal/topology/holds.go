package topology

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
)

// holds asks the lifecycle hooks that come before a part of a plan, and collects the outcome. Without Hooks, it does nothing.
type holds struct {
	Hooks
	lifecycle.Outcome
	cluster *clusterv1.Cluster
}

// ask reports whether a hook blocks.
func (h *holds) ask(ctx context.Context, call lifecycle.Call) (blocks bool, err error) {
	answer, err := h.Ask(ctx, h.cluster, call)
	if err != nil || answer.RetryAfter == 0 {
		return false, err
	}
	h.Blocking = append(h.Blocking, lifecycle.Blocked{Hook: call.Hook, Answer: answer})
	return true, nil
}

// creation asks before the first object is created.
func (h *holds) creation(ctx context.Context) error {
	call, due := lifecycle.BeforeCreate(h.cluster)
	if h.Hooks == nil || !due {
		return nil
	}
	blocks, err := h.ask(ctx, call)
	if err == nil && !blocks {
		h.Pending = append(h.Pending, lifecycle.AfterControlPlaneInitialized)
	}
	return err
}

// completion reports whether a hook waits for the end of an upgrade.
func (h *holds) completion() bool {
	return h.Hooks != nil && lifecycle.IsPending(h.cluster, lifecycle.AfterClusterUpgrade)
}

// versions computes the versions, and asks before a version is given to the control plane or to workers.
func (h *holds) versions(ctx context.Context, in upgrade.Input) (upgrade.Plan, error) {
	if h.Hooks == nil {
		return upgrade.Compute(in), nil
	}
	if call, due := lifecycle.BeforeWorkers(h.cluster, in); due {
		blocks, err := h.ask(ctx, call)
		if err != nil {
			return upgrade.Plan{}, err
		}
		in.WorkersHeld = blocks
		if !blocks {
			h.Called = append(h.Called, call.Hook)
		}
	}
	if call, due := lifecycle.BeforeUpgrade(in, upgrade.Compute(in)); due {
		blocks, err := h.ask(ctx, call)
		if err != nil {
			return upgrade.Plan{}, err
		}
		in.ControlPlaneHeld = blocks
		if !blocks {
			h.Pending = append(h.Pending, lifecycle.AfterControlPlaneUpgrade, lifecycle.AfterClusterUpgrade)
		}
	}
	return upgrade.Compute(in), nil
}
