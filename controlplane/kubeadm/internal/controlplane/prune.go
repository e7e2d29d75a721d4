package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/step"
)

// prune keeps etcd free of members without a machine. One whose Machine is being deleted, by whomever, leaves while it
// can still hand over; one that no Machine and no Node stands behind any more is removed.
func (c *Controller) prune(ctx context.Context, s *scope) (step.Result, error) {
	if s.observed == nil || !s.stacked() || len(s.machines) == 0 {
		return step.Done(), nil
	}
	result, err := c.leaveDeleted(ctx, s)
	return result, errors.Join(err, c.removeStrays(ctx, s))
}

// leaveDeleted takes the members of Machines that are being deleted out of etcd. That of the last Machine stays: there
// is nobody to hand over to.
func (c *Controller) leaveDeleted(ctx context.Context, s *scope) (step.Result, error) {
	var (
		result step.Result
		errs   []error
	)
	for _, m := range s.machines {
		members := s.observed.etcd().members
		if !m.deleting() || len(members) < 2 || !slices.Contains(members, m.node()) {
			continue
		}
		switch why, err := c.leaveEtcd(ctx, s, m); {
		case err != nil:
			errs = append(errs, fmt.Errorf("machine %s, which is being deleted: %w", m.Name, err))
		case why != "":
			result = step.Again(etcdBackstop)
		default:
			s.observed.forget(m.node())
		}
	}
	return result, errors.Join(errs...)
}

// removeStrays removes the members of machines that are gone, such as those that somebody switched off for good.
func (c *Controller) removeStrays(ctx context.Context, s *scope) error {
	strays := slices.DeleteFunc(s.strays(), func(name string) bool { return s.observed.etcd().mayLose(name) != "" })
	if len(strays) == 0 {
		return nil
	}
	// The cache may not show a Machine yet whose member has joined already.
	if all, err := c.seesAll(ctx, s); err != nil || !all {
		return err
	}
	var errs []error
	for _, name := range strays {
		cluster := s.observed.etcd()
		if cluster.mayLose(name) != "" {
			continue
		}
		var err error
		if name == "" {
			err = s.workload.RemoveUnstartedEtcdMembers(ctx, cluster.healthy)
		} else {
			err = s.workload.RemoveEtcdMember(ctx, name, cluster.others(name))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("removing etcd member %q, which has no Machine: %w", name, err))
			continue
		}
		s.observed.forget(name)
	}
	return errors.Join(errs...)
}

// strays are the etcd members that neither a Machine nor a Node stands behind. While a Machine has no Node yet its
// member cannot be told from those, so there are none. A member without a name has not started yet: it is somebody's
// as long as a Machine has no member.
func (s *scope) strays() []string {
	if s.observed == nil || !s.stacked() {
		return nil
	}
	members := s.observed.etcd().members
	known := map[string]bool{}
	for _, m := range s.machines {
		if m.node() == "" {
			return nil
		}
		known[m.node()] = true
		known[""] = known[""] || !slices.Contains(members, m.node())
	}
	for name := range s.observed.Nodes {
		known[name] = true
	}
	strays := slices.DeleteFunc(slices.Clone(members), func(name string) bool { return known[name] })
	return slices.Compact(strays)
}

// seesAll says whether the cache shows all Machines that are the control plane's, or could be.
func (c *Controller) seesAll(ctx context.Context, s *scope) (bool, error) {
	live := &clusterv1.MachineList{}
	err := c.Live.List(ctx, live, client.InNamespace(s.kcp.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: s.cluster.Name}, client.HasLabels{clusterv1.MachineControlPlaneLabel})
	if err != nil {
		return false, fmt.Errorf("listing the control plane Machines of Cluster %s: %w", s.key(), err)
	}
	return !slices.ContainsFunc(live.Items, func(m clusterv1.Machine) bool {
		controller := metav1.GetControllerOf(&m)
		return s.named(m.Name) == nil && (controller == nil || controller.UID == s.kcp.UID)
	}), nil
}

// etcd is what the members that were asked agree on.
func (o *Observation) etcd() etcdCluster {
	answers := make([]EtcdMember, 0, len(o.Etcd))
	for _, answer := range o.Etcd {
		answers = append(answers, answer)
	}
	return etcdOf(answers)
}

// forget: the member has left since it was observed.
func (o *Observation) forget(name string) {
	for node, answer := range o.Etcd {
		answer.Members = slices.DeleteFunc(slices.Clone(answer.Members), func(n string) bool { return n == name })
		o.Etcd[node] = answer
	}
}
