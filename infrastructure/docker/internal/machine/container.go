package machine

import (
	"context"
	"fmt"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/engine"
	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/identity"
	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/job"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// restartDelay is how long a container must have run before it is started again: one that always exits would be restarted forever.
const restartDelay = 10 * time.Second

// container creates the container, or starts it, and records its addresses.
func (c *Controller) container(ctx context.Context, s *scope) (step.Result, error) {
	state, err := c.engine.Inspect(ctx, s.Container())
	switch {
	case engine.IsNotFound(err) && s.HadContainer():
		return c.gone(ctx, s), nil
	case engine.IsNotFound(err):
		return c.create(ctx, s)
	case err != nil && s.HadContainer():
		return step.Done(), err // That the runtime does not respond says nothing about the container.
	case err != nil:
		return step.Done(), failed(err)
	}
	if err := s.Claim().Check(s.Container(), state.Labels); err != nil {
		return step.Done(), failed(err)
	}
	switch {
	case state.Running:
		return running(s, state), nil
	case s.HadContainer():
		return stopped(s, state), nil
	case state.Started.IsZero():
		// Its creation was interrupted.
		if err := c.engine.Remove(ctx, s.Container()); err != nil {
			return step.Done(), failed(err)
		}
		return c.create(ctx, s)
	}
	return c.restart(ctx, s, state)
}

func running(s *scope, state *engine.State) step.Result {
	s.obj.Status.Addresses = s.Addresses(state)
	return step.Done()
}

// gone reports that a container was removed by others. Status and provider ID are kept.
func (c *Controller) gone(ctx context.Context, s *scope) step.Result {
	const format = "Container %s was removed: delete the Machine to replace it"
	if before := condition.Get(s.obj, dockerv1.ContainerProvisionedCondition); before == nil || before.Reason != dockerv1.ContainerDeletedReason {
		step.Warning(ctx, dockerv1.ContainerDeletedReason, format, s.Container())
	}
	return step.Stop().WithConditions(condition.False(dockerv1.ContainerProvisionedCondition, clusterv1.ConditionSeverityError,
		dockerv1.ContainerDeletedReason, format, s.Container()))
}

// stopped reports a bootstrapped container that does not run. It is not started: a machine that fails stays as it is, until it is
// remediated.
func stopped(s *scope, state *engine.State) step.Result {
	return step.Stop().WithConditions(condition.False(dockerv1.ContainerProvisionedCondition, clusterv1.ConditionSeverityWarning,
		dockerv1.ContainerProvisioningFailedReason, "Container %s does not run, exit code %d: start it with \"docker start %s\", or delete the Machine to replace it",
		s.Container(), state.ExitCode, s.Container()))
}

// restart starts a container that stopped before it was bootstrapped.
func (c *Controller) restart(ctx context.Context, s *scope, state *engine.State) (step.Result, error) {
	if ran := c.Clock.Since(state.Started); ran < restartDelay {
		return step.Done(), failed(fmt.Errorf("container %s exited with code %d after its start: see \"docker logs %s\"", s.Container(), state.ExitCode, s.Container()))
	}
	if err := c.engine.Start(ctx, s.Container()); err != nil {
		return step.Done(), failed(err)
	}
	return c.started(ctx, s)
}

// started reads the addresses of a container that was just started.
func (c *Controller) started(ctx context.Context, s *scope) (step.Result, error) {
	state, err := c.engine.Inspect(ctx, s.Container())
	if err != nil {
		return step.Done(), failed(err)
	}
	return running(s, state), nil
}

// create creates the container. Whether the image is present is not asked before: it usually is.
func (c *Controller) create(ctx context.Context, s *scope) (step.Result, error) {
	described, err := s.Describe()
	if err != nil {
		return step.Done(), failed(err)
	}
	if err := c.confirm(ctx, s); err != nil {
		return step.Done(), err
	}
	if err := c.engine.EnsureNetwork(ctx, identity.Network); err != nil {
		return step.Done(), failed(err)
	}
	err = c.engine.Create(ctx, described)
	switch {
	case engine.IsNotFound(err):
		return c.pull(s, described.Image, err)
	case engine.IsConflict(err):
		return step.Done(), step.Stale("container %s already exists", described.Name)
	case err != nil:
		return step.Done(), failed(err)
	}
	c.jobs.Forget(s.jobKey(pulling))
	return c.started(ctx, s)
}

// pulling is the job that pulls the image.
const pulling = "pull"

// pull pulls the image in the background. missing is the error of the attempt without it.
func (c *Controller) pull(s *scope, image string, missing error) (step.Result, error) {
	key := s.jobKey(pulling)
	pulled := job.Run(c.jobs, key, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.engine.EnsureImage(ctx, image)
	})
	if pulled.Running {
		return step.Wait("image " + image + " to be pulled").KeepCondition(), nil
	}
	c.jobs.Forget(key)
	if pulled.Err != nil {
		return step.Done(), failed(pulled.Err)
	}
	return step.Done(), failed(missing) // The image was removed since, and is pulled again.
}
