package healthcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/healthcheck/diagnosis"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// unansweredBackstop is the delay before Nodes are read again from an API server that did not answer although it is connected. If the
	// connection breaks, an event comes first; if the API server responds again, there is none.
	unansweredBackstop = 15 * time.Second
	// nodesPage is the number of Nodes that are read with one request: Nodes with many images have some 50 KiB, and responses are limited.
	nodesPage = 100
	// nodesTimeout is the timeout for reading all Nodes. Workload clusters are not trusted: they may answer slowly, and without end.
	nodesTimeout = 5 * time.Second
)

// confirm diagnoses the Machines again from the API servers, if the plan begins or ends a remediation. What follows acts on that result.
func (c *Controller) confirm(ctx context.Context, s *scope) (step.Result, error) {
	if !c.acts(s) {
		return step.Done(), nil
	}
	check, cluster := &clusterv1.MachineHealthCheck{}, &clusterv1.Cluster{}
	result, err := c.Latest(ctx, step.Reread(s.check, check, same), step.Reread(s.cluster, cluster, nil))
	if err != nil || result.Ends() {
		s.plan = nil
		return result, err
	}
	list := &clusterv1.MachineList{}
	if err := c.Live.List(ctx, list, ownership.InCluster(check.Namespace, check.Spec.ClusterName)); err != nil {
		s.plan = nil
		return step.Done(), fmt.Errorf("listing the Machines of the Cluster in the API server: %w", err)
	}
	targets, err := targetsOf(check, list)
	if err != nil {
		s.plan = nil
		return step.Done(), err
	}
	in := diagnosis.Input{Check: check, Cluster: cluster, Targets: targets}
	if s.unreachable == nil && diagnosis.Initialized(cluster) {
		if in.Nodes, err = c.liveNodes(ctx, s, targets); err != nil {
			s.unreachable = err
			result = step.Again(unansweredBackstop)
		}
	}
	in.Now = c.Clock.Now()
	if s.plan, err = c.plan(ctx, in); err != nil {
		s.plan = nil
		return step.Done(), err
	}
	s.plan.TemplateMissing = s.external() && s.template == nil
	if next := c.wake(s); result.After() == 0 {
		result = next
	}
	return result, nil
}

// acts reports whether the plan begins or ends a remediation.
func (c *Controller) acts(s *scope) bool {
	return slices.ContainsFunc(s.plan.Marks(), func(m diagnosis.Mark) bool { return !m.First }) || s.requestsChange()
}

// same reports whether two versions of a check remediate Machines of the same Cluster in the same way. All other fields count as they
// are in the API server.
func same(live, cached *clusterv1.MachineHealthCheck) bool {
	return live.Spec.ClusterName == cached.Spec.ClusterName &&
		equality.Semantic.DeepEqual(live.Spec.Remediation.TemplateRef, cached.Spec.Remediation.TemplateRef)
}

// errNotAnswering is the error of a workload cluster that did not answer the last time, while another such cluster is queried.
var errNotAnswering = errors.New("the API server of the workload cluster did not answer in time")

// liveNodes returns the Nodes of Machines from the API server of the workload cluster. Of the clusters that did not answer the last time,
// only one is queried at a time, so that they do not keep all workers busy.
func (c *Controller) liveNodes(ctx context.Context, s *scope, targets []*clusterv1.Machine) (map[string]*corev1.Node, error) {
	workload, err := c.workloads.Get(ctx, s.key())
	if err != nil {
		return nil, err
	}
	done, allowed := c.suspects.begin(s.key())
	if !allowed {
		return nil, errNotAnswering
	}
	ctx, cancel := context.WithTimeout(ctx, nodesTimeout)
	defer cancel()
	nodes, err := listNodes(ctx, workload.Live, s.check, targets)
	done(err == nil)
	return nodes, err
}

// listNodes lists all Nodes, and keeps those of Machines, with the conditions that a check depends on.
func listNodes(
	ctx context.Context, from client.Reader, h *clusterv1.MachineHealthCheck, targets []*clusterv1.Machine,
) (map[string]*corev1.Node, error) {
	wanted := map[string]bool{}
	for _, m := range targets {
		if m.Status.NodeRef.IsDefined() {
			wanted[m.Status.NodeRef.Name] = true
		}
	}
	nodes := map[string]*corev1.Node{}
	next := ""
	for {
		list := &corev1.NodeList{}
		if err := from.List(ctx, list, client.Limit(nodesPage), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("listing the Nodes in the API server of the workload cluster: %w", remote.Tidy(err))
		}
		for i := range list.Items {
			if name := list.Items[i].Name; wanted[name] {
				nodes[name] = diagnosis.Relevant(h, &list.Items[i])
			}
		}
		if next = list.Continue; next == "" {
			return nodes, nil
		}
	}
}

// targetsOf returns the Machines of a list that a check selects, in the order of their names.
func targetsOf(h *clusterv1.MachineHealthCheck, list *clusterv1.MachineList) ([]*clusterv1.Machine, error) {
	selects, err := diagnosis.Selector(h)
	if err != nil {
		return nil, step.Terminal(fmt.Errorf("invalid spec.selector: %w", err))
	}
	var out []*clusterv1.Machine
	for i := range list.Items {
		if m := &list.Items[i]; selects(m) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *clusterv1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}
