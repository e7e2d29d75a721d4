package cluster

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/engine"
	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/identity"
	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/loadbalancer"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// Defaults of the image of the load balancer.
const (
	defaultRepository = "kindest"
	imageName         = "haproxy"
	defaultTag        = "v20230510-486859a6"
)

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
		if err := c.engine.Remove(ctx, state.ID); err != nil {
			return step.Done(), failed("%w", err)
		}
		return c.create(ctx, s)
	}
	if !state.Running {
		if err := c.engine.Start(ctx, s.name); err != nil {
			return step.Done(), failed("%w", err)
		}
		return c.started(ctx, s)
	}
	return c.runs(ctx, s, state)
}

// create creates the container. HAProxy starts with the built-in configuration without machines: templates of users are
// validated in the container.
func (c *Controller) create(ctx context.Context, s *scope) (step.Result, error) {
	if err := c.engine.EnsureNetwork(ctx, identity.Network); err != nil {
		return step.Done(), failed("%w", err)
	}
	image := imageOf(s.obj.Spec.LoadBalancer)
	if err := c.engine.EnsureImage(ctx, image); err != nil {
		return step.Done(), failed("%w", err)
	}
	builtIn, err := loadbalancer.BuiltIn()
	if err != nil {
		return step.Done(), err
	}
	initial := loadbalancer.Config{Port: portOf(s.obj), IPv6: isIPv6(s.cluster)}
	config, err := builtIn.Render(initial)
	if err != nil {
		return step.Done(), err
	}
	recorded, err := recordOf(config, nil).encode()
	if err != nil {
		return step.Done(), err
	}
	err = c.engine.Create(ctx, engine.Container{
		Name: s.name, Hostname: hostname(s.name), Image: image, Network: identity.Network, Labels: s.claim(s.cluster.Name).Labels(),
		Files: []engine.File{{Path: recordPath, Content: recorded}, {Path: loadbalancer.Path, Content: config}},
		// HAProxy may listen on ports below 1024, also if the image has another user than root.
		Sysctls: map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"},
		// Where containers are in a virtual machine, the endpoint can only be reached through a port of the host.
		Ports:   []engine.Port{{HostIP: "127.0.0.1", ContainerPort: uint16(initial.Port)}},
		Restart: true,
	})
	if engine.IsConflict(err) {
		return step.Done(), step.Stale("container %q was created meanwhile", s.name)
	}
	if err != nil {
		return step.Done(), failed("%w", err)
	}
	return c.started(ctx, s)
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
	return step.Done(), failed("container %q exits after it is started (see \"docker logs %s\"): %s", s.name, s.name, cmp.Or(reason, "it has no logs"))
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

func portOf(obj *dockerv1.DockerCluster) int {
	if port := obj.Spec.ControlPlaneEndpoint.Port; port > 0 && port <= 65535 {
		return port
	}
	return loadbalancer.DefaultPort
}
