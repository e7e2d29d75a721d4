package cluster

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/job"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/loadbalancer"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Defaults of the image of the load balancer.
const (
	defaultRepository = "kindest"
	imageName         = "haproxy"
	defaultTag        = "v20230510-486859a6"
)

// restartDelay is how long a container must have run before it is started again: its exit is an event that leads to the next start.
const restartDelay = 10 * time.Second

// imageOf returns the image of the load balancer.
func imageOf(spec dockerv1.DockerLoadBalancer) string {
	repository := cmp.Or(strings.TrimRight(spec.ImageRepository, "/"), defaultRepository)
	return fmt.Sprintf("%s/%s:%s", repository, imageName, cmp.Or(spec.ImageTag, defaultTag))
}

// container makes the container of the load balancer run.
func (c *Controller) container(ctx context.Context, s *scope) (step.Result, error) {
	state, err := c.engine.Inspect(ctx, s.name)
	switch {
	case engine.IsNotFound(err):
		return c.create(ctx, s)
	case err != nil:
		return step.Done(), failed("%w", err)
	}
	if err := s.claim(s.cluster.Name).Check(s.name, state.Labels); err != nil {
		return step.Done(), failed("%w", err)
	}
	if state.Started.IsZero() { // Its creation was interrupted.
		if result, err := c.confirm(ctx, s); err != nil || result.Ends() {
			return result, err
		}
		if err := c.engine.Remove(ctx, state.ID); err != nil {
			return step.Done(), failed("%w", err)
		}
		return c.create(ctx, s)
	}
	if state.Paused { // An event reports that it continues.
		return step.Stop().WithConditions(condition.False(dockerv1.LoadBalancerAvailableV1Beta1Condition, clusterv1.ConditionSeverityWarning,
			dockerv1.LoadBalancerProvisioningFailedV1Beta1Reason,
			"container %q is paused: resume it with \"docker unpause %s\"", s.name, s.name)), nil
	}
	if !state.Running && c.Clock.Since(state.Started) < restartDelay {
		return c.runs(ctx, s, state)
	}
	if !state.Running {
		if err := c.engine.Start(ctx, s.name); err != nil {
			return step.Done(), failed("%w", err)
		}
		return c.started(ctx, s)
	}
	return c.runs(ctx, s, state)
}

// create creates the container.
func (c *Controller) create(ctx context.Context, s *scope) (step.Result, error) {
	image := imageOf(s.obj.Spec.LoadBalancer)
	if c.jobs.Has(pullOf(s)) {
		if pulled := c.pull(ctx, s, image); pulled.Ends() {
			return pulled, nil
		}
	}
	described, err := describe(s, image)
	if err != nil {
		return step.Done(), err
	}
	if result, err := c.confirm(ctx, s); err != nil || result.Ends() {
		return result, err
	}
	if err := c.engine.EnsureNetwork(ctx, identity.Network); err != nil {
		return step.Done(), failed("%w", err)
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
		return retried(ctx, s, created), nil
	case engine.IsNotFound(err) && c.jobs.Has(pullOf(s)): // The image was removed since, and is pulled again.
		c.jobs.Forget(pullOf(s))
		return step.Done(), failed("%w", err)
	case engine.IsNotFound(err): // Whether the image is present is not asked before: it usually is.
		return c.pull(ctx, s, image), nil
	case err != nil:
		return step.Done(), step.Stale("container %q was created meanwhile", s.name)
	}
	c.jobs.Forget(pullOf(s))
	return c.started(ctx, s)
}

// describe returns the container. HAProxy starts with the built-in configuration without machines: templates of users are validated in
// the container.
func describe(s *scope, image string) (engine.Container, error) {
	builtIn, err := loadbalancer.BuiltIn()
	if err != nil {
		return engine.Container{}, err
	}
	initial := loadbalancer.Config{Port: portOf(s.obj), IPv6: isIPv6(s.cluster)}
	config, err := builtIn.Render(initial)
	if err != nil {
		return engine.Container{}, err
	}
	recorded, err := recordOf(config, nil).encode()
	if err != nil {
		return engine.Container{}, err
	}
	return engine.Container{
		Name: s.name, Hostname: hostname(s.name), Image: image, Network: identity.Network, Labels: s.claim(s.cluster.Name).Labels(),
		Files: []engine.File{{Path: recordPath, Content: recorded}, {Path: loadbalancer.Path, Content: config}},
		// HAProxy may listen on ports below 1024, also if the image has another user than root.
		Sysctls: map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"},
		// Where containers are in a virtual machine, the endpoint can only be reached through a port of the host.
		Ports:   []engine.Port{{HostIP: "127.0.0.1", ContainerPort: uint16(initial.Port)}},
		Restart: engine.Always,
	}, nil
}

// jobKey returns the key of a job for the object.
func (s *scope) jobKey(name string) job.Key {
	return job.Key{Object: client.ObjectKeyFromObject(s.obj.Object), UID: s.obj.UID, Name: name}
}

// pullOf returns the key of the job that pulls the image.
func pullOf(s *scope) job.Key { return s.jobKey("pull " + imageOf(s.obj.Spec.LoadBalancer)) }

// retried reports a failure in the condition, and in an event if that is new. Another attempt follows after a pause.
func retried(ctx context.Context, s *scope, ended job.State[struct{}]) step.Result {
	is := condition.False(dockerv1.LoadBalancerAvailableV1Beta1Condition, clusterv1.ConditionSeverityWarning,
		dockerv1.LoadBalancerProvisioningFailedV1Beta1Reason, "%v", ended.Err)
	if before := condition.Get(s.obj.Object, is.Type); before == nil || before.Message != is.Message {
		step.Warning(ctx, is.Reason, "%s", is.Message)
	}
	return step.WaitAtMost(ended.RetryIn, "the next attempt: "+is.Message).WithConditions(is)
}

// pull pulls the image in the background. It is Done when the image is present. The failure of an attempt stays visible during the
// next one, which follows after a pause.
func (c *Controller) pull(ctx context.Context, s *scope, image string) step.Result {
	pulled := job.Run(c.jobs, pullOf(s), func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.engine.EnsureImage(ctx, image)
	})
	before := condition.Get(s.obj.Object, dockerv1.LoadBalancerAvailableV1Beta1Condition)
	switch {
	case pulled.Running && before != nil && before.Reason == dockerv1.LoadBalancerProvisioningFailedV1Beta1Reason:
		return step.Wait("image " + image + " to be pulled").KeepCondition()
	case pulled.Running:
		return step.Wait("image " + image + " to be pulled").Because(dockerv1.PullingImageV1Beta1Reason)
	case pulled.Err == nil:
		return step.Done()
	}
	return retried(ctx, s, pulled)
}

// started continues after the container was started.
func (c *Controller) started(ctx context.Context, s *scope) (step.Result, error) {
	state, err := c.engine.Inspect(ctx, s.name)
	if err != nil {
		return step.Done(), failed("%w", err)
	}
	return c.runs(ctx, s, state)
}

// runs continues with a container that was started: it may have exited since.
func (c *Controller) runs(ctx context.Context, s *scope, state *engine.State) (step.Result, error) {
	if state.Running && cmp.Or(state.IPv4, state.IPv6) != "" {
		s.state = state
		// The condition is set by the next steps.
		return step.Done().KeepCondition(), nil
	}
	reason := ""
	if logs, err := c.engine.Logs(ctx, s.name); err == nil {
		reason = lastLine(logs)
	}
	return step.Done(), failed("container %q exits after it is started (see \"docker logs %s\"): %s",
		s.name, s.name, cmp.Or(reason, "it has no logs"))
}

// maxLine is the maximum length of a line of output in a condition.
const maxLine = 200

// lastLine returns the end of the last line that is not empty.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return shorten(lines[len(lines)-1])
}

func shorten(line string) string { return condition.Truncate(strings.TrimSpace(line), maxLine) }

// hostname returns a name that Linux accepts for a host.
func hostname(name string) string {
	const limit = 63
	return strings.TrimRight(name[:min(len(name), limit)], "-.")
}

func portOf(obj kinds.Cluster) int {
	if port := obj.Endpoint.Port; port > 0 && port <= 65535 {
		return int(port)
	}
	return loadbalancer.DefaultPort
}
