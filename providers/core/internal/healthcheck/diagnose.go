package healthcheck

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/healthcheck/diagnosis"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// connectingBackstop bounds the wait for a first attempt to connect: if it fails, there is no event.
	connectingBackstop = 10 * time.Second
	// timerSlack is added to the time at which a condition has lasted long enough: timestamps are in whole seconds. It also lets Machines
	// that failed together be remediated together.
	timerSlack = time.Second
)

// diagnose diagnoses the Machines from the caches. The result requeues the check when the next verdict changes.
func (c *Controller) diagnose(ctx context.Context, s *scope) (step.Result, error) {
	targets, err := c.targets(ctx, s.check)
	if err != nil {
		return step.Done(), err
	}
	in := diagnosis.Input{Check: s.check, Cluster: s.cluster, Targets: targets, Now: c.Clock.Now()}
	if diagnosis.Initialized(s.cluster) {
		if in.Nodes, err = c.cachedNodes(ctx, s, targets); err != nil {
			return step.Done(), err
		}
	}
	if s.plan, err = c.plan(ctx, in); err != nil {
		s.plan = nil
		return step.Done(), err
	}
	c.announce(s)
	if err := c.readRequests(ctx, s); err != nil {
		return step.Done(), err
	}
	s.plan.TemplateMissing = s.external() && s.template == nil
	if s.plan.TemplateMissing {
		return step.Again(templateBackstop), nil
	}
	return c.wake(s), nil
}

// wake requeues the check when the next verdict changes, or the fleet may have recovered.
func (c *Controller) wake(s *scope) step.Result {
	var after time.Duration
	if next := s.plan.Next(); !next.IsZero() {
		after = max(next.Sub(c.Clock.Now()), 0) + timerSlack
	}
	if s.plan.Brake != nil && (after == 0 || after > brakeBackstop) {
		after = brakeBackstop
	}
	if after > 0 {
		return step.Again(after)
	}
	if remote.IsConnecting(s.unreachable) {
		return step.Again(connectingBackstop)
	}
	return step.Done()
}

// targets returns the Machines of a check, in the order of their names. They must not be modified.
func (c *Controller) targets(ctx context.Context, h *clusterv1.MachineHealthCheck) ([]*clusterv1.Machine, error) {
	list := &clusterv1.MachineList{}
	if err := c.Client.List(ctx, list, ownership.InCluster(h.Namespace, h.Spec.ClusterName), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return targetsOf(h, list)
}

// cachedNodes returns the Nodes of Machines from the cache; nil if there is no connection to the workload cluster.
func (c *Controller) cachedNodes(ctx context.Context, s *scope, targets []*clusterv1.Machine) (map[string]*corev1.Node, error) {
	workload, err := c.workloads.Get(ctx, s.key())
	if remote.IsNotConnected(err) {
		s.unreachable = err
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	nodes := map[string]*corev1.Node{}
	for _, m := range targets {
		if !m.Status.NodeRef.IsDefined() {
			continue
		}
		node := &corev1.Node{}
		switch err := workload.Get(ctx, client.ObjectKey{Name: m.Status.NodeRef.Name}, node); {
		case err == nil:
			nodes[node.Name] = node
		case client.IgnoreNotFound(err) != nil:
			return nil, err
		}
	}
	return nodes, nil
}

// announce records an event for each Machine that was healthy, and that or whose Node began to fail.
func (c *Controller) announce(s *scope) {
	failing := map[string]bool{}
	for _, f := range s.plan.Findings {
		if f.Verdict != diagnosis.Failing || !condition.IsTrue(f.Machine, clusterv1.MachineHealthCheckSucceededV1Beta1Condition) {
			continue
		}
		failure := string(f.Machine.UID) + f.Message()
		failing[failure] = true
		if !c.memory.announced(s.check, failure) {
			c.Recorder.Eventf(f.Machine, corev1.EventTypeNormal, "DetectedUnhealthy", "%s; remediation begins at %s if that does not change",
				f.Message(), f.Due.UTC().Format(time.RFC3339))
		}
	}
	c.memory.announce(s.check, failing)
}
