package machinedeployment

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/machinedeployment/rollout"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// plan computes the replicas of each MachineSet.
func (c *Controller) plan(_ context.Context, s *scope) (step.Result, error) {
	strategy := strategyOf(s.deployment)
	if err := s.bounds(); err != nil {
		return step.Done(), step.Terminal(fmt.Errorf("spec.strategy.rollingUpdate of MachineDeployment %s: %w", s.deployment.Name, err))
	}
	r := s.rollout()
	switch {
	case ptr.Deref(s.deployment.Spec.Paused, false):
		s.targets = r.Scale(strategy == clusterv1.RollingUpdateMachineDeploymentStrategyType)
	case strategy == clusterv1.RollingUpdateMachineDeploymentStrategyType && len(s.movable) > 0:
		s.targets = r.UpdateInPlace()
	case strategy == clusterv1.RollingUpdateMachineDeploymentStrategyType:
		s.targets = r.RollingUpdate()
	case strategy == clusterv1.OnDeleteMachineDeploymentStrategyType:
		s.targets = r.OnDelete()
	default:
		return step.Done(), step.Terminal(fmt.Errorf("spec.strategy.type of MachineDeployment %s is %q: it must be RollingUpdate or OnDelete",
			s.deployment.Name, strategy))
	}
	return step.Again(s.nextPassing()), nil
}

// nextPassing returns when the next Machine becomes available that passes its readiness gates for too short a time; zero if there is none.
// No status changes then that a MachineSet would report.
func (s *scope) nextPassing() time.Duration {
	var next time.Duration
	for _, t := range s.tallies {
		if t.Passing < t.Available && t.NextAvailable > 0 && (next == 0 || t.NextAvailable < next) {
			next = t.NextAvailable
		}
	}
	return next
}

func strategyOf(md *clusterv1.MachineDeployment) clusterv1.MachineDeploymentRolloutStrategyType {
	return cmp.Or(md.Spec.Rollout.Strategy.Type, clusterv1.RollingUpdateMachineDeploymentStrategyType)
}

// replicas returns how many Machines there must be. A negative number was admitted once; it counts as zero.
func (s *scope) replicas() int32 { return max(0, *s.deployment.Spec.Replicas) }

// bounds resolves maxSurge and maxUnavailable of a rolling update.
func (s *scope) bounds() (err error) {
	if strategyOf(s.deployment) != clusterv1.RollingUpdateMachineDeploymentStrategyType {
		return nil
	}
	update := s.deployment.Spec.Rollout.Strategy.RollingUpdate
	s.surge, s.unavailable, err = rollout.Bounds(s.replicas(), update.MaxSurge, update.MaxUnavailable)
	return err
}

// rollout returns the input of the planner.
func (s *scope) rollout() rollout.Rollout {
	r := rollout.Rollout{Desired: s.replicas(), MaxSurge: s.surge, MaxUnavailable: s.unavailable}
	for _, set := range s.old() {
		r.Old = append(r.Old, s.observed(set))
	}
	switch {
	case s.current != nil:
		r.New = ptr.To(s.observed(s.current))
	case !ptr.Deref(s.deployment.Spec.Paused, false):
		r.New = &rollout.Set{Name: s.newIdentity.name}
	}
	return r
}

func (s *scope) observed(set *clusterv1.MachineSet) rollout.Set {
	machines := s.tally(set)
	arrived := s.arrived(set)
	replicas, actual := max(0, ptr.Deref(set.Spec.Replicas, 0)), machines.Replicas+int32(len(arrived))
	for _, m := range arrived {
		if !inplace.IsAcknowledged(set, m) {
			replicas++
		}
	}
	moving := inplace.MovesTo(set) != ""
	if moving && (set == s.current || ptr.Deref(s.deployment.Spec.Paused, false)) {
		replicas = max(replicas, actual) // Machines that have not moved yet stay.
	}
	return rollout.Set{
		Name:      set.Name,
		Created:   set.CreationTimestamp.Time,
		Revision:  revision(set.Annotations),
		Replicas:  replicas,
		Actual:    actual,
		Movable:   s.movable[set.Name],
		Moving:    moving,
		Updating:  machines.Updating,
		Available: machines.Passing,
		Frozen:    metav1.HasAnnotation(set.ObjectMeta, clusterv1.DisableMachineCreateAnnotation),
		Desired:   number(set, clusterv1.DesiredReplicasAnnotation),
		Max:       number(set, clusterv1.MaxReplicasAnnotation),
	}
}

// number returns the value of an annotation, zero if it is not a number.
func number(set *clusterv1.MachineSet, annotation string) int32 {
	n, err := strconv.ParseInt(set.Annotations[annotation], 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int32(n)
}
