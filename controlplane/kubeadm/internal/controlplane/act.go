package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/plan"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// act takes the next action, if its checks pass. Whatever keeps them from passing wakes us when it changes: Machines,
// Nodes, Pods and connections are watched; what etcd says is asked again (see inspect).
func (c *Controller) act(ctx context.Context, s *scope) (step.Result, error) {
	action := plan.Next(s.planned())
	s.state(action)
	switch {
	case action.Kind == plan.Nothing:
		return s.later(c.Clock.Now()), nil
	case action.Kind == plan.Initialise:
		// Two first Machines would be two clusters at one address.
		if stale, err := c.confirmFounding(ctx, s); stale != "" || err != nil {
			return catchUp(stale), err
		}
		s.confirmed = true
		if err := c.create(ctx, s, action.FailureDomain); err != nil {
			return step.Result{}, err
		}
		return step.Wait("the first Machine to come up"), nil
	case len(action.Blocked) > 0:
		return s.blocked(action), nil
	}
	if stale, err := c.confirm(ctx, s); stale != "" || err != nil {
		return catchUp(stale), err
	}
	if action.Rollout {
		if err := s.workload.PrepareVersion(ctx, s.kcp); err != nil {
			return step.Result{}, fmt.Errorf("preparing the workload cluster for the rollout: %w", err)
		}
	}
	if action.Kind == plan.ScaleDown {
		return c.remove(ctx, s, action.Machine)
	}
	if err := c.create(ctx, s, action.FailureDomain); err != nil {
		return step.Result{}, err
	}
	return step.Wait("the new Machine to come up"), nil
}

// later: a rollout that is asked for a time to come begins then.
func (s *scope) later(now time.Time) step.Result {
	if after := s.kcp.Spec.RolloutAfter; after != nil && after.After(now) {
		return step.Again(after.Sub(now))
	}
	return step.Done()
}

// planned is the scope as the planner sees it.
func (s *scope) planned() plan.Input {
	in := plan.Input{Desired: s.desired(), MaxSurge: 1, Initialised: s.begun()}
	if r := s.kcp.Spec.RolloutStrategy; r != nil && r.RollingUpdate != nil && r.RollingUpdate.MaxSurge != nil {
		in.MaxSurge = r.RollingUpdate.MaxSurge.IntValue()
	}
	for _, name := range slices.Sorted(maps.Keys(s.cluster.Status.FailureDomains)) {
		if s.cluster.Status.FailureDomains[name].ControlPlane {
			in.FailureDomains = append(in.FailureDomains, name)
		}
	}
	if s.observed == nil {
		in.Unreachable = cmp.Or(s.waiting, "the workload cluster was not looked at yet")
	}
	for _, m := range s.machines {
		in.Machines = append(in.Machines, s.plannedMachine(m))
	}
	in.Strays = s.strays()
	return in
}

func (s *scope) plannedMachine(m *machine) plan.Machine {
	p := plan.Machine{
		Name: m.Name, Created: m.CreationTimestamp.Time,
		Deleting: m.deleting(), Outdated: len(m.outdated) > 0,
	}
	if m.Spec.FailureDomain != nil {
		p.FailureDomain = *m.Spec.FailureDomain
	}
	_, p.Unwanted = m.Annotations[clusterv1.DeleteMachineAnnotation]
	p.Held = p.Deleting && hooked(m.Machine)
	if m.node() == "" {
		p.Problems = []string{"it has no Node"} // and so nothing is known of what runs there
		return p
	}
	for _, t := range healthTypes(s.stacked()) {
		switch c := condition.Get(m, t); {
		case c == nil:
			p.Problems = append(p.Problems, string(t)+" is not known")
		case c.Status != corev1.ConditionTrue:
			p.Problems = append(p.Problems, fmt.Sprintf("%s is %s (%s)", t, c.Status, c.Reason))
			p.Broken = true
		}
	}
	return p
}

// state sets the conditions that tell what is going on.
func (s *scope) state(action plan.Action) {
	s.rolling = action.Rollout
	count, desired := len(s.machines), s.desired()
	before := s.changing()
	defer func() { s.began = !before && s.changing() }()
	if action.Rollout {
		condition.Set(s.kcp, condition.False(controlplanev1.MachinesSpecUpToDateCondition, clusterv1.ConditionSeverityWarning,
			controlplanev1.RollingUpdateInProgressReason, "Rolling %d Machines with an outdated spec (%d up to date)", s.outdatedCount(), count-s.outdatedCount()))
	} else if condition.Has(s.kcp, controlplanev1.MachinesSpecUpToDateCondition) {
		condition.Set(s.kcp, condition.True(controlplanev1.MachinesSpecUpToDateCondition))
	}
	switch {
	case count < desired:
		condition.Set(s.kcp, condition.False(controlplanev1.ResizedCondition, clusterv1.ConditionSeverityWarning,
			controlplanev1.ScalingUpReason, "Scaling up control plane to %d replicas (actual %d)", desired, count))
	case count > desired:
		condition.Set(s.kcp, condition.False(controlplanev1.ResizedCondition, clusterv1.ConditionSeverityWarning,
			controlplanev1.ScalingDownReason, "Scaling down control plane to %d replicas (actual %d)", desired, count))
	}
}

// changing: the conditions tell of Machines that are to come or to go.
func (s *scope) changing() bool {
	return condition.IsFalse(s.kcp, controlplanev1.ResizedCondition) || condition.IsFalse(s.kcp, controlplanev1.MachinesSpecUpToDateCondition)
}

func (s *scope) outdatedCount() int {
	n := 0
	for _, m := range s.machines {
		if len(m.outdated) > 0 {
			n++
		}
	}
	return n
}

// blocked waits until the checks pass.
func (s *scope) blocked(action plan.Action) step.Result {
	reasons := make([]string, 0, len(action.Blocked))
	for _, f := range action.Blocked {
		reasons = append(reasons, f.String())
	}
	s.unhealthy = strings.Join(reasons, "; ")
	return step.Wait(fmt.Sprintf("%s: %s", action.Kind, s.unhealthy))
}

// podsHealthy: all components of the Machine work.
func podsHealthy(m *machine, stacked bool) bool {
	for _, c := range components(stacked) {
		if !condition.IsTrue(m, c.condition) {
			return false
		}
	}
	return true
}

// readyNodes counts the control plane's Nodes that are ready.
func (o *Observation) readyNodes() int32 {
	var n int32
	for _, node := range o.Nodes {
		if nodeReady(node) {
			n++
		}
	}
	return n
}
