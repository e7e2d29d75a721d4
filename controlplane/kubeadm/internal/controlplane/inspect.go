package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// inspect states the health of components and etcd members on the Machines: one write for each Machine whose health
// changed.
func (c *Controller) inspect(ctx context.Context, s *scope) (step.Result, error) {
	if s.workload != nil {
		observed, err := observe(ctx, s)
		if err != nil {
			return step.Result{}, err
		}
		s.observed = observed
	} else if !s.lost {
		return step.Done(), nil
	}
	var (
		result step.Result
		errs   []error
	)
	for _, m := range s.machines {
		before := m.Status.Conditions.DeepCopy()
		for _, stated := range s.health(m) {
			s.failed = s.failed || condition.IsTrue(m, stated.Type) && stated.Severity == clusterv1.ConditionSeverityError
			condition.Set(m, stated)
		}
		if err := c.SaveConditions(ctx, m.Machine, before); err != nil {
			errs = append(errs, err)
		}
		if s.observed != nil && s.memberDown(m) {
			result = step.Again(etcdBackstop)
		}
	}
	return result, errors.Join(errs...)
}

// memberDown: only the etcd member keeps the Machine from being healthy, so no event has to come when it is well again.
func (s *scope) memberDown(m *machine) bool {
	return s.stacked() && !m.deleting() && m.node() != "" && podsHealthy(m, true) && !condition.IsTrue(m, controlplanev1.MachineEtcdMemberHealthyCondition)
}

// health are the conditions of one Machine. A Machine without Node has none yet: its components cannot be found.
func (s *scope) health(m *machine) []clusterv1.Condition {
	node := m.node()
	switch {
	case node == "":
		return nil
	case m.deleting():
		var all []clusterv1.Condition
		for _, t := range healthTypes(s.stacked()) {
			if current := condition.Get(m, t); current == nil || current.Reason != clusterv1.DeletingReason { // see explain
				all = append(all, condition.False(t, clusterv1.ConditionSeverityInfo, clusterv1.DeletingReason, ""))
			}
		}
		return all
	case s.observed == nil:
		return s.unknown()
	}
	all := podConditions(s.observed, node, s.stacked())
	if s.stacked() {
		all = append(all, memberCondition(s.observed, node))
	}
	return all
}

// unknown is said of every Machine while the workload cluster is away.
func (s *scope) unknown() []clusterv1.Condition {
	var all []clusterv1.Condition
	for _, component := range components(s.stacked()) {
		all = append(all, condition.Unknown(component.condition, controlplanev1.PodInspectionFailedReason, "The workload cluster cannot be reached"))
	}
	if s.stacked() {
		all = append(all, condition.Unknown(controlplanev1.MachineEtcdMemberHealthyCondition,
			controlplanev1.EtcdMemberInspectionFailedReason, "The workload cluster cannot be reached"))
	}
	return all
}

// observe reads Nodes and Pods from the cache, and asks the etcd members whose Pods are ready.
func observe(ctx context.Context, s *scope) (*Observation, error) {
	nodes, err := s.workload.Nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing control plane Nodes: %w", err)
	}
	pods, err := s.workload.Pods(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing control plane Pods: %w", err)
	}
	o := &Observation{Nodes: map[string]*corev1.Node{}, Pods: map[string]*corev1.Pod{}, Etcd: map[string]EtcdMember{}}
	for i := range nodes {
		if len(nodes[i].Name) <= validation.DNS1123SubdomainMaxLength { // Others are no Nodes, whatever their API server says.
			o.Nodes[nodes[i].Name] = &nodes[i]
		}
	}
	for i := range pods {
		o.Pods[pods[i].Name] = &pods[i]
	}
	if !s.stacked() {
		return o, nil
	}
	answers := s.workload.Etcd(ctx, s.askable(o))
	if disagree(answers) {
		// They were asked while a member joined or left, which some had heard of and some not. Now all have.
		answers = s.workload.Etcd(ctx, s.askable(o))
	}
	for _, member := range answers {
		o.Etcd[member.Node] = member
	}
	return o, nil
}

// disagree: the members that answer know different members.
func disagree(answers []EtcdMember) bool {
	answers = slices.DeleteFunc(slices.Clone(answers), func(a EtcdMember) bool { return a.Err != nil })
	return slices.ContainsFunc(answers, func(a EtcdMember) bool { return !slices.Equal(a.Members, answers[0].Members) })
}

// askable are the Nodes whose etcd members are worth asking.
func (s *scope) askable(o *Observation) []string {
	var names []string
	for _, m := range s.machines {
		node := o.Nodes[m.node()]
		if node == nil || unreachable(node) {
			continue
		}
		if pod := o.Pods["etcd-"+node.Name]; pod != nil && podReady(pod) {
			names = append(names, node.Name)
		}
	}
	return names
}
