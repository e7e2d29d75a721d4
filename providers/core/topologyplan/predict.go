package topologyplan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ssa"
)

// maxRounds bounds the rounds of a prediction: an upgrade of MachineDeployments one after the other has one for each.
const maxRounds = 1000

// prediction carries plans out in a world.
type prediction struct {
	*World
	Input
	common
	plan *Plan
	// replaced are the Machines that a rollout of an earlier round has replaced.
	replaced map[string]bool
}

// run adds rounds until nothing changes. A first round without changes completes the rollouts that are already in progress: more may
// follow from them.
func (p *prediction) run(ctx context.Context) error {
	p.replaced = map[string]bool{}
	var first Round
	for i := range maxRounds {
		round, waiting, err := p.round(ctx)
		if err != nil {
			return fmt.Errorf("planning Cluster %s: %w", p.plan.Cluster, typed(err))
		}
		p.plan.Waiting = waiting
		switch {
		case len(round.Changes) > 0 && i == 1 && len(p.plan.Rounds) == 0:
			p.plan.Rounds = []Round{first, round}
		case len(round.Changes) > 0:
			p.plan.Rounds = append(p.plan.Rounds, round)
		case i > 0:
			return nil
		default:
			first = round
		}
	}
	return fmt.Errorf("planning Cluster %s: the objects still change after %d rounds: the ClusterClass has a patch that never settles",
		p.plan.Cluster, maxRounds)
}

// round plans, and carries the plan out in the world.
func (p *prediction) round(ctx context.Context) (Round, string, error) {
	cluster := &clusterv1.Cluster{}
	if err := p.Get(ctx, *p.plan.Cluster, cluster); err != nil {
		return Round{}, "", err
	}
	hooks := &recorder{extensions: p.extensions.client}
	applier := ssa.NewApplier(p.Live, p.schemas, plan.FieldManager)
	planner := p.planner(applier, hooks)
	planned, err := planner.Plan(ctx, cluster)
	if err != nil {
		return Round{}, "", err
	}
	if len(p.plan.ControlPlaneUpgrades) == 0 {
		chain := planned.Versions.Remaining
		p.plan.ControlPlaneUpgrades, p.plan.WorkersUpgrades = chain.ControlPlane, chain.Workers
	}
	round := Round{Hooks: hooks.names}
	for _, stage := range planned.Stages {
		for _, change := range stage {
			if err := p.apply(ctx, applier, change, &round); err != nil {
				return Round{}, "", err
			}
		}
	}
	for _, u := range planned.Deletions {
		p.Remove(u)
		round.Changes = append(round.Changes, Change{Action: Deleted, Before: u})
	}
	if err := p.reference(cluster, planned, &round); err != nil {
		return Round{}, "", err
	}
	if err := p.rollouts(ctx, &round); err != nil {
		return Round{}, "", err
	}
	slices.SortStableFunc(round.Changes, func(a, b Change) int {
		order := []Action{Created, Modified, Deleted}
		if byAction := slices.Index(order, a.Action) - slices.Index(order, b.Action); byAction != 0 {
			return byAction
		}
		return byKindAndName(a.Object(), b.Object())
	})
	_, waiting, _ := planned.Versions.Waiting()
	if ptr.Deref(cluster.Spec.Paused, false) {
		waiting = strings.TrimSuffix("nothing changes while the Cluster is paused. "+waiting, ". ")
	}
	return round, waiting, p.complete(ctx, planned)
}

// planner returns the planner of the topology controller, in this world.
func (p *prediction) planner(applier *ssa.Applier, hooks plan.Hooks) *plan.Planner {
	return &plan.Planner{
		Reader:   p.World,
		External: external.Reader{Client: p.World, Versions: contract.APIVersions{Reader: p.World}},
		Compare:  comparer{Applier: applier, offline: p.Live == nil, undryable: p.undryable}, Classes: p.classes,
		Hooks: hooks, Upgrades: p.extensions.upgrades,
	}
}

// apply carries out one change.
func (p *prediction) apply(ctx context.Context, applier *ssa.Applier, change plan.Change, round *Round) error {
	if change.Kept {
		return nil
	}
	after, err := applier.Preview(ctx, change.Live, change.Desired, change.Options...)
	if err != nil {
		return err
	}
	if change.Live == nil {
		created(after)
		after.SetGeneration(1)
		p.Put(after)
		round.Changes = append(round.Changes, Change{Action: Created, After: after})
		return nil
	}
	if fields := changedFields(change.Live, after); len(fields) > 0 {
		p.Put(after)
		round.Changes = append(round.Changes, Change{Action: Modified, Before: change.Live, After: after, Fields: fields})
	}
	return nil
}

// reference sets what the controller sets in the Cluster.
func (p *prediction) reference(cluster *clusterv1.Cluster, planned *plan.Plan, round *Round) error {
	after := cluster.DeepCopy()
	if after.Labels == nil {
		after.Labels = map[string]string{}
	}
	maps.Copy(after.Labels, planned.Labels)
	after.Spec.InfrastructureRef, after.Spec.ControlPlaneRef = planned.InfrastructureRef, planned.ControlPlaneRef
	visible := after.DeepCopy()
	lifecycle.MarkPending(after, planned.Hooks.Pending...)
	lifecycle.MarkCalled(after, planned.Hooks.Called...)
	if initialized, due := lifecycle.Initialized(after); due {
		lifecycle.MarkCalled(after, initialized.Hook)
	}
	for _, call := range lifecycle.AfterUpgrade(after, planned.Versions) {
		lifecycle.MarkCalled(after, call.Hook)
	}
	lifecycle.MarkStep(after, planned.Versions.Step)
	if err := p.PutTyped(after); err != nil || equality.Semantic.DeepEqual(cluster, visible) {
		return err
	}
	before, beforeErr := unstructuredCluster(cluster)
	changed, afterErr := unstructuredCluster(visible)
	if err := errors.Join(beforeErr, afterErr); err != nil {
		return err
	}
	round.Changes = append(round.Changes, Change{Action: Modified, Before: before, After: changed, Fields: changedFields(before, changed)})
	return nil
}

func unstructuredCluster(cluster *clusterv1.Cluster) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cluster)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(clusterKind))
	return u, nil
}

// complete completes what the round started, unless it is held: the control plane reports its version and replicas, and Machines have
// the version of their MachineDeployment. Without the versions of Nodes, a MachinePool is complete as soon as its spec is.
func (p *prediction) complete(ctx context.Context, planned *plan.Plan) error {
	if planned.ControlPlaneRef.IsDefined() {
		ref, err := contract.APIVersions{Reader: p.World}.Reference(ctx, &planned.ControlPlaneRef, p.Namespace)
		if err != nil {
			return err
		}
		u, err := p.get(ctx, ref.GroupVersionKind(), client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
		if err != nil {
			return err
		}
		if pausedObject(u.GetAnnotations()) == "" {
			err = p.provision(u.DeepCopy())
		}
		if err != nil {
			return err
		}
	}
	deployments := &clusterv1.MachineDeploymentList{}
	if err := p.List(ctx, deployments, client.InNamespace(p.Namespace), inCluster(p.plan.Cluster.Name)); err != nil {
		return err
	}
	for i := range deployments.Items {
		md := &deployments.Items[i]
		if heldDeployment(md) != "" {
			continue
		}
		machines, err := p.machines(ctx, client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: md.Name})
		if err != nil {
			return err
		}
		for _, m := range machines {
			m.Spec.Version = md.Spec.Template.Spec.Version
			if err := p.PutTyped(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// provision sets the status of a control plane to that of one that matches its spec, in the words of both contracts.
func (p *prediction) provision(u *unstructured.Unstructured) error {
	version, _, err := unstructured.NestedString(u.Object, "spec", "version")
	if err != nil {
		return err
	}
	replicas, found, err := unstructured.NestedFieldNoCopy(u.Object, "spec", "replicas")
	if err != nil {
		return err
	}
	status := map[string]any{"version": version, "ready": true, "initialized": true, "unavailableReplicas": int64(0)}
	unstructured.RemoveNestedField(u.Object, "status", "versions")
	if found {
		status["versions"] = []any{map[string]any{"version": version, "replicas": replicas}}
		for _, name := range []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "upToDateReplicas"} {
			status[name] = replicas
		}
	}
	status["initialization"] = map[string]any{"controlPlaneInitialized": true}
	for name, value := range status {
		if err := unstructured.SetNestedField(u.Object, value, "status", name); err != nil {
			return err
		}
	}
	p.Put(u)
	return nil
}

func inCluster(name string) client.MatchingLabels {
	return client.MatchingLabels{clusterv1.ClusterNameLabel: name}
}

// comparer asks the API server in a dry run only about objects that it has.
type comparer struct {
	*ssa.Applier
	offline   bool
	undryable *kindSet
}

// Unchanged implements plan.Comparer.
func (c comparer) Unchanged(ctx context.Context, live, desired *unstructured.Unstructured, opts ...ssa.Option) (bool, error) {
	kind := live.GroupVersionKind().GroupKind()
	if c.offline || live.GetResourceVersion() == "" || c.undryable != nil && c.undryable.has(kind) {
		return false, nil
	}
	same, err := c.Applier.Unchanged(ctx, live, desired, opts...)
	if apierrors.IsForbidden(err) && c.undryable != nil {
		c.undryable.add(kind)
		return false, nil
	}
	return same, err
}
