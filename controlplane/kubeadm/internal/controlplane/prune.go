package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/cluster-api/provider/step"
)

// prune keeps etcd free of members without a machine: one that no Machine and no Node stands behind any more is removed.
func (c *Controller) prune(ctx context.Context, s *scope) (step.Result, error) {
	if s.observed == nil || !s.stacked() || len(s.machines) == 0 {
		return step.Done(), nil
	}
	return step.Done(), c.removeStrays(ctx, s)
}

// removeStrays removes the members of machines that are gone, such as those that somebody switched off for good.
func (c *Controller) removeStrays(ctx context.Context, s *scope) error {
	strays := slices.DeleteFunc(s.strays(), func(name string) bool { return s.observed.etcd().mayLose(name) != "" })
	if len(strays) == 0 {
		return nil
	}
	// The cache may not show a Machine yet whose member has joined already.
	if stale, err := c.confirmMachines(ctx, s); err != nil || stale != "" {
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
