package topologyplan

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
	"sigs.k8s.io/cluster-api/providers/core/internal/webhook"
	"sigs.k8s.io/cluster-api/sdk/ssa"
)

// Series plans updates of many Clusters of a management cluster. What they have in common is read once, and again after two minutes:
// ClusterClasses, their templates, definitions with their schemas, and ExtensionConfigs. It is safe for concurrent use.
type Series struct {
	in     Input
	clock  clock.PassiveClock
	scheme *runtime.Scheme
	shared *shared
	common common
	hooks  *webhook.Cluster
}

// common is what plans of a World have in common with others.
type common struct {
	schemas    *ssa.Schemas
	classes    *plan.Classes
	extensions *extensions
	// undryable are the kinds that the user may not dry-run. Nil: they are errors.
	undryable *kindSet
}

func newCommon(reader client.Reader, in Input) (common, error) {
	extensions, err := newExtensions(reader, in)
	if err != nil {
		return common{}, err
	}
	return common{schemas: ssa.NewSchemas(reader, reader), classes: plan.NewClasses(extensions.patches), extensions: extensions}, nil
}

// kindSet is a set of kinds. It is safe for concurrent use.
type kindSet struct {
	mu    sync.Mutex
	kinds map[schema.GroupKind]bool
}

func (s *kindSet) has(kind schema.GroupKind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kinds[kind]
}

func (s *kindSet) add(kind schema.GroupKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kinds == nil {
		s.kinds = map[schema.GroupKind]bool{}
	}
	s.kinds[kind] = true
}

// fresh reads each object anew, in a world of its own.
type fresh struct{ world func() *World }

// Get implements client.Reader.
func (f fresh) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return f.world().Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (f fresh) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return f.world().List(ctx, list, opts...)
}

// NewSeries returns a Series. Of the input, it uses Live, which is required, SkipExtensions, Dial, UserAgent and ControlPlanes.
func NewSeries(in Input, c clock.PassiveClock) (*Series, error) {
	if in.Live == nil {
		return nil, errors.New("a series of plans requires a management cluster")
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	s := &Series{in: in, clock: c, scheme: scheme, shared: newShared(in.Live, c)}
	s.in.Objects, s.in.Cluster = nil, ""
	reader := fresh{s.world}
	// Whole definitions are tens of megabytes together: they are dropped once their schemas are parsed.
	whole := fresh{func() *World { return worldOf(scheme, in.Live) }}
	if s.common, err = newCommon(reader, in); err != nil {
		return nil, err
	}
	s.common.schemas, s.common.undryable = ssa.NewSchemas(reader, whole), &kindSet{}
	s.hooks, err = newHooks(reader)
	return s, err
}

// Forget makes everything be read again. Without it, changes of ClusterClasses are seen after up to two minutes.
func (s *Series) Forget() { s.shared.forget() }

// world returns a world over the shared objects.
func (s *Series) world() *World {
	w := worldOf(s.scheme, s.shared)
	w.metadataApart = true
	return w
}

// Update returns the plan for a Cluster that is changed by an update from before, which is as it was read from the management cluster, to
// after. Only objects that belong to this Cluster are read in addition to what the Series shares, with one list for each kind of workers.
// The error is a *RefusedError if the update would be refused, a *ClassError or an *ExtensionError where these are why there is no plan.
// Dry runs that the user may not send count as changes.
func (s *Series) Update(ctx context.Context, before, after *clusterv1.Cluster) (*Plan, error) {
	world, in := s.world(), s.in
	in.Namespace, in.Now = before.Namespace, s.clock.Now()
	if err := world.PutTyped(before); err != nil {
		return nil, err
	}
	old := before.DeepCopy()
	i := intake{World: world, dryRun: in.Live}
	if err := i.update(ctx, s.hooks.Reading(world, objectsOf(world)), old, after.DeepCopy()); err != nil {
		return nil, fmt.Errorf("Cluster %s: %w", client.ObjectKeyFromObject(before), world.refused(err))
	}
	key := client.ObjectKeyFromObject(before)
	computed := &Plan{Clusters: []client.ObjectKey{key}, Cluster: &key}
	p := &prediction{World: world, Input: in, plan: computed, common: s.common}
	err := p.run(ctx)
	if class, ok := errors.AsType[*ClassError](err); ok && !class.Missing {
		s.Forget() // It will be reconciled soon.
	}
	return computed, err
}
