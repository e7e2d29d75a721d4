package rotation

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rotation/authority"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rotation/plan"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// committing is how long a reconcile waits that only has to write the status before the next one.
const committing = 50 * time.Millisecond

// learned is what a reconcile has found out, or done, in addition to what it has read.
type learned struct {
	published, settled, inspected, outdated bool
	// unsettled is what settling waits for.
	unsettled string
}

// advance carries out what package plan decides, until it has to wait. Each action may be repeated: after a kill, it is decided on again.
func (c *Controller) advance(ctx context.Context, s *scope) (step.Result, error) {
	var known learned
	for {
		name, done, err := s.current()
		if err != nil || done {
			return step.Done(), err
		}
		facts, err := c.facts(ctx, s, name, known)
		if err != nil {
			return step.Done(), s.failing(name, err)
		}
		s.count(name, facts)
		action, waits := plan.Next(facts)
		ctrl.LoggerFrom(ctx).V(2).Info("Rotation", "step", name, "action", action)
		if action == plan.Await || action == plan.Pause {
			return s.await(name, facts, action, waits), nil
		}
		if err := c.act(ctx, s, name, action, &known); err != nil {
			return step.Done(), s.failing(name, err)
		}
		switch {
		case action == plan.Finish && name != fleetv1.DropOldStep:
			return step.WaitAtMost(committing, "the status to be written"), nil
		case known.unsettled != "":
			return s.await(name, facts, plan.Await, known.unsettled), nil
		}
	}
}

// failing makes the condition say what fails. It is tried again.
func (s *scope) failing(name string, err error) error {
	if !step.IsStale(err) {
		s.Wait(poll, "Step "+name+" goes on when this succeeds: "+condition.Brief(err.Error()))
	}
	return err
}

// await waits for what plan says.
func (s *scope) await(name string, f plan.Facts, action plan.Action, waits string) step.Result {
	message := "Step " + name + ": " + waits
	if mark := s.Marks.Find(name); mark != nil {
		mark.Message = operation.Brief(waits)
	}
	switch {
	case action == plan.Pause:
		return s.Paused(poll, "The rotation is paused. Next, in step "+name+", "+waits)
	case f.Paused:
		return s.Paused(poll, "The rotation is paused when what has begun is complete. "+message)
	}
	s.Running(message)
	for _, since := range []time.Time{f.ControlPlane.Since, f.Workers.Since} {
		if s.now.Before(since) {
			return step.WaitAtMost(since.Sub(s.now)+committing, waits)
		}
	}
	return step.WaitAtMost(poll, waits)
}

// current returns the name of the step to take; done if all are complete. The status may be lost, as after a move to another management
// cluster: then the Secrets tell which steps are complete.
func (s *scope) current() (name string, done bool, err error) {
	furthest := authority.Old
	for _, a := range s.authorities() {
		secret := s.secrets[a]
		if secret == nil {
			return "", false, fmt.Errorf("Secret %s was deleted: restore it from a backup",
				pki.SecretName(s.rotation.Spec.ClusterName, authority.Purpose(a)))
		}
		furthest = max(furthest, s.changes[a].StageOf(secret.Data))
	}
	for _, name := range steps() {
		if s.Completed(name) {
			continue
		}
		if authority.Of(name) < furthest {
			s.Complete(name, "the Secrets have the certificates of a later step")
			continue
		}
		return name, false, s.intact(name)
	}
	return "", true, nil
}

// intact returns an error if a Secret has neither what the step demands nor what the previous step has left.
func (s *scope) intact(name string) error {
	target := authority.Of(name)
	for _, a := range s.authorities() {
		if at := s.changes[a].StageOf(s.secrets[a].Data); at != target && at != target-1 {
			return fmt.Errorf("Secret %s has other certificates than this rotation has written: restore it from a backup, or delete the "+
				"rotation if another one was made by hand", s.secrets[a].Name)
		}
	}
	return nil
}

// facts returns what is known for a step.
func (c *Controller) facts(ctx context.Context, s *scope, name string, known learned) (plan.Facts, error) {
	mark := s.rotation.Step(name)
	f := plan.Facts{
		Step: name, Begun: mark != nil, Paused: ptr.Deref(s.rotation.Spec.Paused, false), Now: s.now,
		Distributed: !slices.ContainsFunc(s.authorities(), func(a fleetv1.Authority) bool {
			return s.changes[a].StageOf(s.secrets[a].Data) != authority.Of(name)
		}),
		Published: known.published, Settled: known.settled, Inspected: known.inspected, Outdated: known.outdated,
		ControlPlane: s.controlPlaneFacts(mark), Workers: s.workerFacts(name, mark), Needed: rolloutsNeeded(s, name), Pools: s.poolFacts(name),
	}
	if mark != nil {
		f.Rollouts = int(ptr.Deref(mark.Rollouts, 0))
		// Workers are replaced after that.
		f.Inspected, f.Settled = f.Inspected || mark.WorkersRolloutTime != nil, f.Settled || mark.WorkersRolloutTime != nil
	}
	var err error
	if f.Published && f.ControlPlane.Since.IsZero() {
		f.Kubeconfig, err = c.kubeconfigFollows(ctx, s, name)
	}
	return f, err
}

// count writes the numbers of Machines into the status.
func (s *scope) count(name string, f plan.Facts) {
	mark := s.rotation.Step(name)
	if mark == nil {
		return
	}
	counted := func(m plan.Machines) *fleetv1.RotatedMachines {
		return &fleetv1.RotatedMachines{Total: int32(m.Total), Replaced: ptr.To(int32(m.Replaced))}
	}
	mark.ControlPlane, mark.Workers = counted(f.ControlPlane), nil
	if f.Workers.Replace {
		mark.Workers = counted(f.Workers)
	}
}

// act carries out an action.
func (c *Controller) act(ctx context.Context, s *scope, name string, action plan.Action, known *learned) error {
	// Creation times are in seconds: what is created in the next second has what was written in this one.
	soon := ptr.To(metav1.NewTime(s.now.UTC().Truncate(time.Second).Add(time.Second)))
	s.Begin(name)
	mark := s.rotation.Step(name)
	switch action {
	case plan.Begin:
		step.Event(ctx, "RotationStep", "Step %s begins", name)
		return nil
	case plan.Distribute:
		return c.distribute(ctx, s, authority.Of(name))
	case plan.Publish:
		return c.publish(ctx, s, authority.Of(name), known)
	case plan.Mark:
		mark.RolloutTime, mark.Rollouts = soon, ptr.To(ptr.Deref(mark.Rollouts, 0)+1)
		known.inspected, known.outdated, known.settled = false, false, false
		return nil
	case plan.RestartControlPlane:
		return c.restartControlPlane(ctx, s, *mark.RolloutTime)
	case plan.Inspect:
		return c.inspect(ctx, s, known)
	case plan.Settle:
		return c.settle(ctx, s, name, known)
	case plan.MarkWorkers:
		mark.WorkersRolloutTime = soon
		return nil
	case plan.RestartWorkers:
		return c.restartWorkers(ctx, s, *mark.WorkersRolloutTime)
	case plan.Finish:
		s.Complete(name, "all that it replaces is replaced")
		step.Event(ctx, "RotationStep", "Step %s is complete", name)
		return nil
	}
	return fmt.Errorf("unknown action %q", action)
}
