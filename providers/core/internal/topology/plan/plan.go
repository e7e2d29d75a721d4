package plan

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/desired"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
	"sigs.k8s.io/cluster-api/sdk/ssa"
)

// Plan computes the plan for a Cluster that has a topology. The Cluster is not changed. While hook BeforeClusterCreate blocks, the plan has
// only Class and Hooks.
func (p *Planner) Plan(ctx context.Context, cluster *clusterv1.Cluster) (*Plan, error) {
	class, err := p.class(ctx, cluster)
	if err != nil {
		return nil, err
	}
	compiled, err := p.Classes.get(class)
	if err != nil {
		return nil, err
	}
	// Hooks get the Cluster as it is stored.
	stored := cluster
	cluster, sources, err := compiled.withVariables(ctx, stored)
	if err != nil {
		return nil, err
	}
	blueprint, err := p.blueprint(ctx, cluster, class, compiled)
	if err != nil {
		return nil, err
	}
	current, err := p.current(ctx, cluster, blueprint)
	if err != nil {
		return nil, err
	}
	hooks := &hookCalls{hooks: p.Hooks, cluster: stored}
	if err := hooks.beforeCreation(ctx); err != nil || hooks.outcome.HoldsCreation() {
		return &Plan{Class: class, Hooks: hooks.outcome}, err
	}
	versions, err := p.versions(ctx, cluster, class, current, hooks)
	if err != nil {
		return nil, err
	}
	want, err := desired.Compute(ctx, desired.Input{
		Cluster: cluster, Sources: sources, Blueprint: blueprint, Current: current, Versions: versions,
	})
	if err != nil {
		return nil, err
	}
	c := &comparison{
		Planner: p, cluster: cluster, current: current, want: want,
		live: map[objectKey]*unstructured.Unstructured{}, kept: map[*unstructured.Unstructured]ssa.Diff{},
	}
	if err := c.rotate(ctx); err != nil {
		return nil, err
	}
	plan, err := c.plan(ctx, class, versions, templatesOf(blueprint))
	if err != nil {
		return nil, err
	}
	plan.Hooks = hooks.outcome
	return plan, nil
}

// plan returns the changes and deletions that turn the current objects into the desired ones.
func (c *comparison) plan(
	ctx context.Context, class *clusterv1.ClusterClass, versions upgrade.Plan, classKinds []*unstructured.Unstructured,
) (*Plan, error) {
	if err := c.refreshMachines(ctx); err != nil {
		return nil, err
	}
	versions.MachineDeployments.NameTaken, versions.MachinePools.NameTaken = c.want.DeploymentsWaiting, c.want.PoolsWaiting
	plan := &Plan{
		Class: class, Labels: desired.ClusterLabels(c.cluster), Versions: versions,
		InfrastructureRef: desired.ContractRefTo(c.want.InfrastructureCluster), ControlPlaneRef: desired.ContractRefTo(c.want.ControlPlane),
		Kinds: append(classKinds, c.want.InfrastructureCluster, c.want.ControlPlane),
	}
	var err error
	if plan.Stages, err = c.stages(ctx); err != nil {
		return nil, err
	}
	if plan.heldTemplates, err = c.heldTemplates(); err != nil {
		return nil, err
	}
	plan.Deletions, err = c.deletions(ctx)
	return plan, err
}
