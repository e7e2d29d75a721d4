package machine

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/job"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
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
	case err != nil && s.HadContainer() && engine.ReasonFor(err) != engine.Invalid:
		return step.Done(), err // That the runtime does not respond says nothing about the container.
	case err != nil:
		return step.Done(), failed(err)
	}
	if err := s.Claim().Check(s.Container(), state.Labels); err != nil {
		return step.Done(), failed(err)
	}
	switch {
	case state.Paused:
		return paused(s), nil
	case state.Running:
		return running(s, state), nil
	case s.HadContainer():
		return stopped(s, state), nil
	case state.Started.IsZero():
		// Its creation was interrupted.
		if result, err := c.confirm(ctx, s); err != nil || result.Ends() {
			return result, err
		}
		if err := c.engine.Remove(ctx, s.Container()); err != nil {
			return step.Done(), failed(err)
		}
		return c.create(ctx, s)
	}
	return c.restart(ctx, s, state)
}

func running(s *scope, state *engine.State) step.Result {
	*s.obj.Addresses = s.Addresses(state)
	return step.Done()
}

// gone reports that a container was removed by another client. Status and provider ID are kept.
func (c *Controller) gone(ctx context.Context, s *scope) step.Result {
	const format = "Container %s was removed: delete the Machine to replace it"
	if before := condition.Get(s.obj.Object, dockerv1.ContainerProvisionedV1Beta1Condition); before == nil ||
		before.Reason != dockerv1.ContainerDeletedV1Beta1Reason {
		step.Warning(ctx, dockerv1.ContainerDeletedV1Beta1Reason, format, s.Container())
	}
	return step.Stop().WithConditions(condition.False(dockerv1.ContainerProvisionedV1Beta1Condition, clusterv1.ConditionSeverityError,
		dockerv1.ContainerDeletedV1Beta1Reason, format, s.Container()))
}

// stopped reports a bootstrapped container that does not run. It is not started: a machine that fails stays as it is, until it is
// remediated.
func stopped(s *scope, state *engine.State) step.Result {
	return step.Stop().WithConditions(condition.False(dockerv1.ContainerProvisionedV1Beta1Condition, clusterv1.ConditionSeverityWarning,
		dockerv1.ContainerProvisioningFailedV1Beta1Reason,
		"Container %s does not run, exit code %d: start it with \"docker start %s\", or delete the Machine to replace it",
		s.Container(), state.ExitCode, s.Container()))
}

// paused reports a container whose processes users have stopped. An event reports that it continues.
func paused(s *scope) step.Result {
	return step.Stop().WithConditions(condition.False(dockerv1.ContainerProvisionedV1Beta1Condition, clusterv1.ConditionSeverityWarning,
		dockerv1.ContainerProvisioningFailedV1Beta1Reason,
		"Container %s is paused: resume it with \"docker unpause %s\"", s.Container(), s.Container()))
}

// restart starts a container that stopped before it was bootstrapped.
func (c *Controller) restart(ctx context.Context, s *scope, state *engine.State) (step.Result, error) {
	if ran := c.Clock.Since(state.Started); ran < restartDelay {
		return step.Done(), failed(fmt.Errorf("container %s exited with code %d after its start: see \"docker logs %s\"",
			s.Container(), state.ExitCode, s.Container()))
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
	pulling := s.jobKey("pull " + described.Image)
	if c.jobs.Has(pulling) {
		if pulled := c.pull(ctx, s, described.Image); pulled.Ends() {
			return pulled, nil
		}
	}
	if result, err := c.confirm(ctx, s); err != nil || result.Ends() {
		return result, err
	}
	if err := c.engine.EnsureNetwork(ctx, identity.Network); err != nil {
		return step.Done(), failed(err)
	}
	// A container that does not start is removed, which is an event that leads here. Another generation may be better.
	created := job.Do(c.jobs, s.jobKey(fmt.Sprintf("create %d", s.obj.Generation)), func() error {
		if err = c.engine.Create(ctx, described); engine.IsNotFound(err) || engine.IsConflict(err) {
			return nil // See below.
		}
		return err
	})
	switch {
	case created.Err != nil:
		return retried(ctx, s, dockerv1.ContainerProvisionedV1Beta1Condition, dockerv1.ContainerProvisioningFailedV1Beta1Reason, created), nil
	case engine.IsNotFound(err) && c.jobs.Has(pulling): // The image was removed since, and is pulled again.
		c.jobs.Forget(pulling)
		return step.Done(), failed(err)
	case engine.IsNotFound(err):
		return c.pull(ctx, s, described.Image), nil
	case err != nil:
		return step.Done(), step.Stale("container %s already exists", described.Name)
	}
	c.jobs.Forget(pulling)
	return c.started(ctx, s)
}

// pull pulls the image in the background. It is Done when the image is present.
func (c *Controller) pull(ctx context.Context, s *scope, image string) step.Result {
	pulled := job.Run(c.jobs, s.jobKey("pull "+image), func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.engine.EnsureImage(ctx, image)
	})
	switch {
	case pulled.Running:
		return working(s, dockerv1.ContainerProvisionedV1Beta1Condition, dockerv1.PullingImageV1Beta1Reason, "image "+image+" to be pulled")
	case pulled.Err != nil:
		return retried(ctx, s, dockerv1.ContainerProvisionedV1Beta1Condition, dockerv1.ContainerProvisioningFailedV1Beta1Reason, pulled)
	}
	return step.Done()
}

// working waits for a job. The failure of its previous attempt stays visible.
func working(s *scope, t clusterv1.ConditionType, reason, what string) step.Result {
	is := condition.Get(s.obj.Object, t)
	if is != nil && is.Status == corev1.ConditionFalse && is.Severity != clusterv1.ConditionSeverityInfo {
		return step.Wait(what).KeepCondition()
	}
	return step.Wait(what).Because(reason)
}

// retried reports a failed job in a condition, and in an event if that is new. The job is attempted again after a pause.
func retried[T any](ctx context.Context, s *scope, t clusterv1.ConditionType, reason string, ended job.State[T]) step.Result {
	is := condition.False(t, clusterv1.ConditionSeverityWarning, reason, "%v", ended.Err)
	if before := condition.Get(s.obj.Object, t); before == nil || before.Message != is.Message {
		step.Warning(ctx, reason, "%s", condition.Truncate(is.Message, maxMessage))
	}
	return step.WaitAtMost(ended.RetryIn, "the next attempt: "+is.Message).WithConditions(is)
}
