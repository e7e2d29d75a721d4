package machine

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// drainTimeout is how long a container waits until the load balancer no longer forwards to it. The last machine of a control
// plane waits that long, because the load balancer keeps it.
const drainTimeout = 10 * time.Second

// remove removes the container with its volumes.
func (c *Controller) remove(ctx context.Context, s *scope) (step.Result, error) {
	deleting := condition.False(dockerv1.ContainerProvisionedV1Beta1Condition, clusterv1.ConditionSeverityInfo,
		clusterv1.DeletingV1Beta1Reason, "")
	c.jobs.ForgetAll(client.ObjectKeyFromObject(s.obj.Object))
	if !controllerutil.ContainsFinalizer(s.obj.Object, c.kinds.MachineFinalizer) {
		return step.Stop(), nil
	}
	if left := c.drains(s); left > 0 {
		return step.WaitAtMost(left, "the load balancer not to forward to container "+s.Container()).WithConditions(deleting), nil
	}
	if result, err := c.confirm(ctx, s); err != nil || result.Ends() {
		return result, err
	}
	names, err := c.containers(ctx, s)
	for _, name := range names {
		err = errors.Join(err, c.engine.Remove(ctx, name))
	}
	if err != nil { // It is the reason that the object still exists.
		return step.Done(), &step.Error{Reason: clusterv1.DeletingV1Beta1Reason, Severity: clusterv1.ConditionSeverityInfo, Err: err}
	}
	controllerutil.RemoveFinalizer(s.obj.Object, c.kinds.MachineFinalizer)
	return step.Done().WithConditions(deleting), nil
}

// drains returns how long to wait at most for the load balancer of a cluster that continues to exist.
func (c *Controller) drains(s *scope) time.Duration {
	if !s.obj.LoadBalancerConfigured || s.cluster == nil || !s.cluster.DeletionTimestamp.IsZero() {
		return 0
	}
	return s.obj.DeletionTimestamp.Add(drainTimeout).Sub(c.Clock.Now())
}

// containers returns the names of the object's containers: those with its labels, and that with its name, which an earlier version
// created. Other containers are left out.
func (c *Controller) containers(ctx context.Context, s *scope) ([]string, error) {
	labeled, err := c.engine.List(ctx, map[string]string{
		identity.KindLabel: s.obj.Kind, identity.NamespaceLabel: s.obj.Namespace, identity.NameLabel: s.obj.Name,
	})
	if err != nil {
		return nil, err
	}
	var names []string
	own := func(name string, labels map[string]string) {
		if s.Claim().Check(name, labels) == nil {
			names = append(names, name)
		}
	}
	for _, state := range labeled {
		own(state.Name, state.Labels)
	}
	if len(names) > 0 || !s.HadContainer() {
		return names, nil
	}
	state, err := c.engine.Inspect(ctx, s.Container())
	if err == nil {
		own(s.Container(), state.Labels)
	}
	if engine.IsNotFound(err) || engine.ReasonFor(err) == engine.Invalid { // No container has an invalid name.
		err = nil
	}
	return names, err
}
