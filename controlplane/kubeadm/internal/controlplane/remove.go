package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/step"
)

// etcdBackstop is how soon etcd is asked again while it alone keeps an action from being taken: nothing tells when its
// members change.
const etcdBackstop = 5 * time.Second

// noSuccessor is what leaveEtcd waits for when nobody could lead.
const noSuccessor = "a healthy etcd member that can lead"

// remove deletes a Machine. Its etcd member leaves first, and before that the Machine is marked, so that whatever
// happens in between, the same Machine is chosen again and the deletion is finished.
func (c *Controller) remove(ctx context.Context, s *scope, name string) (step.Result, error) {
	m := s.named(name)
	if m == nil {
		return step.Wait("a Machine that can be deleted"), nil
	}
	if s.stacked() && m.node() != "" {
		if err := c.mark(ctx, m); err != nil {
			return step.Result{}, err
		}
		if why, err := c.leaveEtcd(ctx, s, m); err != nil || why != "" {
			if err != nil {
				step.Warning(ctx, "FailedScaleDown", "Cannot remove the etcd member of Machine %s: %s", m.Name, err)
			}
			return step.WaitAtMost(etcdBackstop, why), err
		}
	}
	err := c.Client.Delete(ctx, m.Machine, client.Preconditions{UID: &m.UID})
	if client.IgnoreNotFound(err) != nil {
		step.Warning(ctx, "FailedScaleDown", "Cannot delete Machine %s: %s", m.Name, err)
		return step.Result{}, fmt.Errorf("deleting Machine %s: %w", m.Name, err)
	}
	c.awaitDeleting(ctx, m)
	return step.Wait("Machine " + m.Name + " to go"), nil
}

const (
	visiblePoll = 2 * time.Millisecond
	visibleWait = 5 * time.Second
)

// awaitDeleting returns once the cache shows that a Machine is being deleted, so that the next reconcile counts it so.
// It gives up silently: acting on an old cache chooses the same Machine once more, this only makes it rare.
func (c *Controller) awaitDeleting(ctx context.Context, m *machine) {
	_ = wait.PollUntilContextTimeout(ctx, visiblePoll, visibleWait, true, func(ctx context.Context) (bool, error) {
		seen := &clusterv1.Machine{}
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(m), seen)
		return apierrors.IsNotFound(err) || err == nil && (seen.DeletionTimestamp != nil || seen.UID != m.UID), client.IgnoreNotFound(err)
	})
}

// mark makes a Machine the first to go, for good.
func (c *Controller) mark(ctx context.Context, m *machine) error {
	if _, marked := m.Annotations[clusterv1.DeleteMachineAnnotation]; marked {
		return nil
	}
	before := m.Machine.DeepCopy()
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[clusterv1.DeleteMachineAnnotation] = ""
	if err := c.Client.Patch(ctx, m.Machine, client.MergeFrom(before), client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("marking Machine %s for deletion: %w", m.Name, err)
	}
	return nil
}

// leaveEtcd takes the Machine's member out of etcd, unless that could cost the quorum: then it says why not. Members
// are asked here and now, whatever was seen before.
func (c *Controller) leaveEtcd(ctx context.Context, s *scope, m *machine) (why string, err error) {
	leaving := m.node()
	cluster := etcdOf(s.workload.Etcd(ctx, s.askable(s.observed)))
	if cluster.members == nil {
		return "an etcd member that answers", nil
	}
	if !slices.Contains(cluster.members, leaving) {
		return "", nil
	}
	if why := cluster.mayLose(leaving); why != "" {
		return why, nil
	}
	successor := s.successor(cluster, m)
	if successor == "" {
		return noSuccessor, nil
	}
	if cluster.leader == leaving {
		if err := s.workload.MoveEtcdLeadership(ctx, leaving, successor); err != nil {
			return "", fmt.Errorf("moving etcd's leadership from %s to %s: %w", leaving, successor, err)
		}
	}
	if err := s.workload.RemoveEtcdMember(ctx, leaving, cluster.others(leaving)); err != nil {
		return "", fmt.Errorf("removing etcd member %s: %w", leaving, err)
	}
	return "", nil
}

// successor is the Node of the newest other Machine whose etcd member is well.
func (s *scope) successor(cluster etcdCluster, leaving *machine) string {
	for _, m := range slices.Backward(s.machines) {
		if m != leaving && !m.deleting() && slices.Contains(cluster.healthy, m.node()) {
			return m.node()
		}
	}
	return ""
}

// etcdCluster is what the members that answer agree on.
type etcdCluster struct {
	// members are the names of all members; nil when nobody answers.
	members []string
	// healthy are the members that answer and have no alarm.
	healthy []string
	leader  string
}

func etcdOf(asked []EtcdMember) etcdCluster {
	var c etcdCluster
	for _, member := range asked {
		if member.Err != nil {
			continue
		}
		// A member that lags behind knows others than those that lead; the longest list is the careful one.
		if len(member.Members) > len(c.members) {
			c.members = member.Members
		}
		if len(member.Alarms) == 0 {
			c.healthy = append(c.healthy, member.Node)
		}
		if member.Leader {
			c.leader = member.Node
		}
	}
	return c
}

// others are the healthy members without this one.
func (c etcdCluster) others(name string) []string {
	return slices.DeleteFunc(slices.Clone(c.healthy), func(n string) bool { return n == name })
}

// mayLose says why a member must not be removed: those that remain must have a quorum without it. Empty: it may go.
func (c etcdCluster) mayLose(name string) string {
	remaining := len(c.members) - 1
	if remaining < 1 {
		return "another etcd member: the last one cannot be removed"
	}
	quorum := remaining/2 + 1
	if healthy := len(c.others(name)); healthy < quorum {
		return fmt.Sprintf("%d healthy etcd members besides %s, there are %d", quorum, name, healthy)
	}
	return ""
}

// prune removes etcd members that no Machine and no Node stands behind any more, such as those of machines that
// somebody deleted by hand. While a Machine has no Node yet its member cannot be told from those, so nothing happens.
func (c *Controller) prune(ctx context.Context, s *scope) (step.Result, error) {
	if s.observed == nil || !s.stacked() || len(s.machines) == 0 {
		return step.Done(), nil
	}
	known := map[string]bool{"": true} // a member without name has not started yet
	for _, m := range s.machines {
		if m.node() == "" {
			return step.Done(), nil
		}
		known[m.node()] = true
	}
	for name := range s.observed.Nodes {
		known[name] = true
	}
	answers := make([]EtcdMember, 0, len(s.observed.Etcd))
	for _, answer := range s.observed.Etcd {
		answers = append(answers, answer)
	}
	cluster := etcdOf(answers)
	var errs []error
	for _, name := range cluster.members {
		if known[name] || cluster.mayLose(name) != "" {
			continue
		}
		if err := s.workload.RemoveEtcdMember(ctx, name, cluster.healthy); err != nil {
			errs = append(errs, fmt.Errorf("removing etcd member %s, which has no Machine: %w", name, err))
			continue
		}
		cluster.members = slices.DeleteFunc(slices.Clone(cluster.members), func(n string) bool { return n == name })
	}
	return step.Done(), errors.Join(errs...)
}
