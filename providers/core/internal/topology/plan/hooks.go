package plan

import (
	"context"
	"fmt"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
)

// hookCalls calls the lifecycle hooks that come before a part of a plan, and collects the outcome. Without hooks, only annotations hold
// anything.
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

// waitForCompletion reports whether anything waits for the end of an upgrade or of a step of it.
func (h *hookCalls) waitForCompletion() bool {
	waits := h.hooks != nil && (lifecycle.IsPending(h.cluster, lifecycle.AfterClusterUpgrade) ||
		lifecycle.IsPending(h.cluster, lifecycle.AfterWorkersUpgrade))
	return waits || lifecycle.Step(h.cluster) != ""
}

// versions computes the versions, and calls the hooks of an upgrade that is not complete.
func (h *hookCalls) versions(ctx context.Context, in upgrade.Input) (upgrade.Plan, error) {
	for _, ask := range []func(context.Context, *upgrade.Input) error{
		h.afterStep, h.beforeUpgrade, h.beforeControlPlane, h.beforeWorkers,
	} {
		if err := ask(ctx, &in); err != nil {
			return upgrade.Plan{}, err
		}
	}
	return upgrade.Compute(in), nil
}

// afterStep calls the hooks of a step that has been completed, and holds the next one while they block. At the end of the upgrade, the
// controller calls the last ones once everything has been applied.
func (h *hookCalls) afterStep(ctx context.Context, in *upgrade.Input) error {
	if h.hooks == nil {
		return nil
	}
	plan := upgrade.Compute(*in)
	if call, due := lifecycle.AfterControlPlane(h.cluster, *in, plan); due {
		blocks, err := h.called(ctx, call)
		if err != nil {
			return err
		}
		in.WorkersHeld, in.ControlPlaneHeld = blocks, blocks
	}
	if call, due := lifecycle.AfterWorkers(h.cluster, plan); due && !plan.Complete() {
		blocks, err := h.called(ctx, call)
		if err != nil {
			return err
		}
		in.ControlPlaneHeld = in.ControlPlaneHeld || blocks
	}
	return nil
}

// called calls a pending hook, which is no longer pending unless it blocks.
func (h *hookCalls) called(ctx context.Context, call lifecycle.Call) (blocks bool, err error) {
	blocks, err = h.call(ctx, call)
	if err == nil && !blocks {
		h.outcome.Called = append(h.outcome.Called, call.Hook)
	}
	return blocks, err
}

// before calls a hook before something, which makes another one pending unless it blocks.
func (h *hookCalls) before(ctx context.Context, call lifecycle.Call, pending lifecycle.Hook) (blocks bool, err error) {
	blocks, err = h.call(ctx, call)
	if err == nil && !blocks {
		h.outcome.Pending = append(h.outcome.Pending, pending)
	}
	return blocks, err
}

// annotationRecheck is how long an annotation that blocks an upgrade is trusted without an event of its removal.
const annotationRecheck = 20 * time.Minute

// beforeUpgrade holds an upgrade that has not started, while annotations or extensions block it.
func (h *hookCalls) beforeUpgrade(ctx context.Context, in *upgrade.Input) (err error) {
	call, due := lifecycle.BeforeUpgrade(h.cluster, upgrade.Compute(*in))
	if !due {
		return nil
	}
	if names := lifecycle.HeldByAnnotation(h.cluster); len(names) > 0 {
		message := fmt.Sprintf("annotation %s is set", strings.Join(names, ", "))
		in.ControlPlaneHeld = h.outcome.Record(call.Hook, lifecycle.Answer{RetryAfter: annotationRecheck, Message: message})
		return nil
	}
	if h.hooks != nil {
		in.ControlPlaneHeld, err = h.before(ctx, call, lifecycle.AfterClusterUpgrade)
	}
	return err
}

// beforeControlPlane holds a step of the control plane.
func (h *hookCalls) beforeControlPlane(ctx context.Context, in *upgrade.Input) (err error) {
	if call, due := lifecycle.BeforeControlPlane(upgrade.Compute(*in)); due && h.hooks != nil {
		in.ControlPlaneHeld, err = h.before(ctx, call, lifecycle.AfterControlPlaneUpgrade)
	}
	return err
}

// beforeWorkers holds the workers before the first of them gets the version at which they stop.
func (h *hookCalls) beforeWorkers(ctx context.Context, in *upgrade.Input) (err error) {
	if call, due := lifecycle.BeforeWorkers(h.cluster, upgrade.Compute(*in)); due && h.hooks != nil {
		in.WorkersHeld, err = h.before(ctx, call, lifecycle.AfterWorkersUpgrade)
	}
	return err
}
