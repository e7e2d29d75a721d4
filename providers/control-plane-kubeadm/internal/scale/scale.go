package scale

import (
	"context"
	"fmt"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/machines"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Workload is the workload cluster, which is prepared for a rollout.
type Workload interface {
	// PrepareVersion prepares the cluster for Machines with the desired version.
	PrepareVersion(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) error
}

// Scaler changes the number of Machines.
type Scaler struct {
	Manager *machines.Manager
	// Extensions calls the extension that updates Machines in place; nil without the feature gate InPlaceUpdates.
	Extensions inplace.Caller
}

// Scale takes the action, if its preflight checks pass. Changes that let them pass trigger a reconcile: Machines, Nodes, Pods
// and connections are watched, and etcd is queried at an interval (package health). newCA is whether this reconcile has created
// the cluster CA.
func (s Scaler) Scale(ctx context.Context, state membership.State, workload Workload, action Action, newCA bool) (step.Result, error) {
	if s.Extensions != nil {
		if result, err := s.continueUpdates(ctx, state); result.Ends() || err != nil {
			return result, err
		}
	}
	switch {
	case action.Kind == Nothing:
		return untilRollout(state, s.Manager.Clock.Now()), nil
	case action.Kind == Initialize:
		return s.initialize(ctx, state, action, newCA)
	case len(action.Blocked) > 0:
		return step.Wait(fmt.Sprintf("%s: %s", action.Kind, action.Blockers())).KeepCondition(), nil
	}
	if stale, err := s.Manager.Confirm().Decision(ctx, state.ControlPlane); stale != "" || err != nil {
		return stale.Wait().KeepCondition(), err
	}
	if action.Rollout {
		if err := workload.PrepareVersion(ctx, state.KCP); err != nil {
			return step.Done(), fmt.Errorf("preparing the workload cluster for the rollout: %w", err)
		}
	}
	if action.Updatable && s.Extensions != nil {
		if begun, err := s.updateInPlace(ctx, state, action.Machine); begun || err != nil {
			return updating(action.Machine), err
		}
	}
	if action.Kind == ScaleDown {
		return s.down(ctx, state, action.Machine)
	}
	if err := s.Manager.Create(ctx, state.ControlPlane, action.FailureDomain, machines.Join); err != nil {
		return step.Done(), err
	}
	return created("the new Machine to join"), nil
}

// initialize creates the first Machine. Two of them would initialize two clusters at the same address. A new cluster CA proves
// that there is none; if the CA exists, for example after an interruption, that is checked live. If the CA of a running cluster
// was deleted, the bootstrap provider still reads the Cluster live before it lets a Machine initialize it.
func (s Scaler) initialize(ctx context.Context, state membership.State, action Action, newCA bool) (step.Result, error) {
	if !newCA {
		if stale, err := s.Manager.Confirm().Initialization(ctx, state.ControlPlane); stale != "" || err != nil {
			return stale.Wait().KeepCondition(), err
		}
	}
	if err := s.Manager.Create(ctx, state.ControlPlane, action.FailureDomain, machines.Initialize); err != nil {
		return step.Done(), err
	}
	return created("the first Machine to initialize the cluster"), nil
}

// created returns the result after a Machine was created.
func created(what string) step.Result {
	return step.Wait(what).WithConditions(condition.True(controlplanev1.MachinesCreatedV1Beta1Condition))
}

// down deletes a Machine, if its etcd member can be removed. The member is removed when the deletion has reached our hook.
func (s Scaler) down(ctx context.Context, state membership.State, name string) (step.Result, error) {
	m := state.Named(name)
	if m == nil {
		return step.Wait("a Machine that can be deleted").KeepCondition(), nil
	}
	if state.StackedEtcd() {
		if why := state.MayRemove(ctx, m); why != "" {
			return step.WaitAtMost(health.EtcdBackstop, why).KeepCondition(), nil
		}
	}
	if err := s.Manager.Delete(ctx, state.ControlPlane, m); err != nil {
		if !step.IsStale(err) {
			step.Warning(ctx, "FailedScaleDown", "Cannot delete Machine %s: %s", m.Name, err)
		}
		return step.Done(), err
	}
	return step.Wait("Machine " + m.Name + " to be deleted").KeepCondition(), nil
}

// untilRollout reconciles again when the first Machine must be replaced because of its age or its certificates: nothing else may
// happen until then.
func untilRollout(state membership.State, now time.Time) step.Result {
	var left time.Duration
	for _, m := range state.Machines {
		if until := m.Due.Sub(now); until > 0 && (left == 0 || until < left) {
			left = until
		}
	}
	return step.Again(left).KeepCondition()
}
