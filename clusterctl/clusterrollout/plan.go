package clusterrollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/rolloutplan"
)

// concurrency is how many Clusters are planned at the same time.
const concurrency = 8

// Plan is what a rollout would do. Fields are added, but neither renamed nor removed.
type Plan struct {
	Namespace string                `json:"namespace"`
	Name      string                `json:"name"`
	Change    fleetv1.RolloutChange `json:"change"`
	// Summary counts Clusters by effect, and has the hash.
	Summary fleetv1.RolloutPlan `json:"plan"`
	// Stages are in order. Each has the Clusters in their order.
	Stages []PlannedStage `json:"stages"`
	// Unassigned are selected Clusters that no stage selects: they are not changed.
	Unassigned []string `json:"unassigned,omitempty"`
	// PlannedHash is the hash of the existing rollout's plan; empty if it has none.
	PlannedHash string `json:"plannedHash,omitempty"`
}

// PlannedStage is a stage of a Plan.
type PlannedStage struct {
	Name     string              `json:"name"`
	Gate     fleetv1.RolloutGate `json:"gate,omitempty"`
	Clusters []PlannedCluster    `json:"clusters"`
}

// PlannedCluster is what a change does to a Cluster.
type PlannedCluster struct {
	Name     string                `json:"name"`
	Effect   fleetv1.RolloutEffect `json:"effect"`
	Machines int32                 `json:"machines,omitempty"`
	Reason   string                `json:"reason,omitempty"`
}

// Changes reports whether the rollout would change anything, or may do so.
func (p *Plan) Changes() bool {
	s := p.Summary
	return *s.InPlace+*s.Replacing+*s.Unknown > 0
}

// Planning makes Plans. It writes nothing.
type Planning struct {
	// Client reads ClusterRollouts, strategies and Clusters.
	Client client.Reader
	// Effect returns what a change does to a Cluster. It is called concurrently.
	Effect func(ctx context.Context, c *clusterv1.Cluster, change *fleetv1.RolloutChange, force bool) (rolloutplan.Effect, error)
	// Backoff is how often temporary errors are tolerated.
	Backoff wait.Backoff
	// Progress is told how many of all Clusters are planned.
	Progress func(done, all int)
}

// Plan returns the plan of a rollout, which need not exist, with one of the given strategies or of the management cluster.
func (p *Planning) Plan(ctx context.Context, r *fleetv1.ClusterRollout, given []*fleetv1.ClusterRolloutStrategy) (*Plan, error) {
	strategy, err := Strategy(ctx, p.Client, r, given)
	if err != nil {
		return nil, err
	}
	selection, err := rolloutplan.NewSelection(&r.Spec)
	if err != nil {
		return nil, fmt.Errorf("ClusterRollout %s: %w", r.Name, err)
	}
	all, err := Clusters(ctx, p.Client, r.Namespace)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(c *clusterv1.Cluster) bool { return !selection.Selects(c) })
	slices.SortFunc(all, func(a, b *clusterv1.Cluster) int { return rolloutplan.Order(a.UID, b.UID) })
	stageOf, err := rolloutplan.Assign(strategy, all)
	if err != nil {
		return nil, fmt.Errorf("ClusterRollout %s: %w", r.Name, err)
	}
	plan := &Plan{Namespace: r.Namespace, Name: r.Name, Change: r.Spec.Change}
	if r.Status.Plan != nil {
		plan.PlannedHash = r.Status.Plan.Hash
	}
	all = slices.DeleteFunc(all, func(c *clusterv1.Cluster) bool {
		if stageOf[c.UID] == "" {
			plan.Unassigned = append(plan.Unassigned, c.Name)
		}
		return stageOf[c.UID] == ""
	})
	slices.Sort(plan.Unassigned)
	class, err := p.class(ctx, r)
	if err != nil {
		return nil, err
	}
	effects, err := p.effects(ctx, r, all)
	if err != nil {
		return nil, err
	}
	outcomes := make([]rolloutplan.Outcome, len(all))
	for i, c := range all {
		outcomes[i] = rolloutplan.Outcome{Cluster: c.Name, UID: c.UID, Stage: stageOf[c.UID], Effect: effects[i]}
	}
	summary, err := rolloutplan.Summary(&r.Spec.Change, class, outcomes)
	if err != nil {
		return nil, err
	}
	plan.Summary, plan.Stages = *summary, stagesOf(strategy, outcomes)
	return plan, nil
}

func stagesOf(strategy *fleetv1.RolloutStrategy, outcomes []rolloutplan.Outcome) []PlannedStage {
	var stages []PlannedStage
	for i := range strategy.Stages {
		stage := PlannedStage{Name: strategy.Stages[i].Name, Gate: strategy.Stages[i].Gate, Clusters: []PlannedCluster{}}
		for _, o := range outcomes {
			if o.Stage == stage.Name {
				stage.Clusters = append(stage.Clusters, PlannedCluster{o.Cluster, o.Effect.Effect, o.Machines, o.Reason})
			}
		}
		stages = append(stages, stage)
	}
	return stages
}

// class returns the ClusterClass of the change as it is; nil if the change has none, or if it does not exist, which the effects say.
func (p *Planning) class(ctx context.Context, r *fleetv1.ClusterRollout) (*fleetv1.PlannedClass, error) {
	ref := r.Spec.Change.ClassRef
	if ref.Name == "" {
		return nil, nil
	}
	key := client.ObjectKey{Namespace: cmp.Or(ref.Namespace, r.Namespace), Name: ref.Name}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("ClusterClass"))
	if err := p.Client.Get(ctx, key, u); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("reading ClusterClass %s: %w", key, err)
	}
	return &fleetv1.PlannedClass{Namespace: key.Namespace, Name: key.Name, UID: string(u.GetUID()), Generation: u.GetGeneration()}, nil
}

// effects returns what the change does to each Cluster.
func (p *Planning) effects(ctx context.Context, r *fleetv1.ClusterRollout, all []*clusterv1.Cluster) ([]rolloutplan.Effect, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	effects, next := make([]rolloutplan.Effect, len(all)), make(chan int)
	var mu sync.Mutex
	var workers sync.WaitGroup
	done := 0
	p.Progress(0, len(all))
	for range min(concurrency, len(all)) {
		workers.Go(func() {
			for i := range next {
				effect, err := p.effect(ctx, r, all[i])
				if err != nil {
					stop(fmt.Errorf("planning Cluster %s: %w", all[i].Name, err))
					continue
				}
				mu.Lock()
				effects[i], done = effect, done+1
				p.Progress(done, len(all))
				mu.Unlock()
			}
		})
	}
	for i := range all {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return effects, context.Cause(ctx)
}

// effect returns what the change does to a Cluster, and tries again while errors are temporary.
func (p *Planning) effect(ctx context.Context, r *fleetv1.ClusterRollout, c *clusterv1.Cluster) (rolloutplan.Effect, error) {
	var effect rolloutplan.Effect
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, p.Backoff, func(ctx context.Context) (bool, error) {
		effect, last = p.Effect(ctx, c, &r.Spec.Change, r.Spec.Force != nil && *r.Spec.Force)
		return last == nil, ctx.Err()
	})
	if err != nil {
		return rolloutplan.Effect{}, cmp.Or(last, err)
	}
	return effect, nil
}

// Parse returns the rollout and the strategies of objects of files; those without a namespace get the given one.
func Parse(objects []*unstructured.Unstructured, namespace string) (*fleetv1.ClusterRollout, []*fleetv1.ClusterRolloutStrategy, error) {
	var rollouts []*fleetv1.ClusterRollout
	var strategies []*fleetv1.ClusterRolloutStrategy
	for _, u := range objects {
		u.SetNamespace(cmp.Or(u.GetNamespace(), namespace))
		switch u.GroupVersionKind() {
		case Kind:
			r := &fleetv1.ClusterRollout{}
			if err := decode(u, r); err != nil {
				return nil, nil, err
			}
			rollouts = append(rollouts, r)
		case fleetv1.GroupVersion.WithKind(fleetv1.ClusterRolloutStrategyKind):
			s := &fleetv1.ClusterRolloutStrategy{}
			if err := decode(u, s); err != nil {
				return nil, nil, err
			}
			strategies = append(strategies, s)
		}
	}
	switch len(rollouts) {
	case 1:
		return rollouts[0], strategies, check(rollouts[0])
	case 0:
		return nil, nil, errors.New("the files have no ClusterRollout: for ClusterClasses, templates and Clusters, use `clusterctl plan`")
	default:
		return nil, nil, fmt.Errorf("the files have %d ClusterRollouts: plan them one at a time", len(rollouts))
	}
}

// check checks what the API server would refuse, and a plan would not notice.
func check(r *fleetv1.ClusterRollout) error {
	change := r.Spec.Change
	switch {
	case r.Name == "":
		return errors.New("the ClusterRollout has no name: set metadata.name")
	case change.ClassRef.Name == "" && change.Version == "" && len(change.Variables) == 0:
		return fmt.Errorf("ClusterRollout %s changes nothing: set spec.change.classRef, version or variables", r.Name)
	case (r.Spec.Strategy != nil) == (r.Spec.StrategyRef.Name != ""):
		return fmt.Errorf("ClusterRollout %s: exactly one of spec.strategy and spec.strategyRef must be set", r.Name)
	}
	return nil
}
