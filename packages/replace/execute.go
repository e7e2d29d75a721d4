package replace

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/remove"
	"sigs.k8s.io/cluster-api/packages/replace/merge"
	"sigs.k8s.io/cluster-api/packages/replace/stage"
	"sigs.k8s.io/cluster-api/packages/retry"
	"sigs.k8s.io/cluster-api/packages/storageversion"
)

// parallelRequests is how many objects are read or written concurrently.
const parallelRequests = 8

// run is the execution of one plan, with the objects as the API server returned them last.
type run struct {
	*Replacer
	// lenient continues with Deployments that do not become available, and adds a note.
	lenient bool
	notes   []string

	mu   sync.Mutex
	live map[manifest.Key]*unstructured.Unstructured
}

// load starts a run with the objects that are known already, and reads the wanted ones that are not.
func (u *Replacer) load(ctx context.Context, wanted, known []unstructured.Unstructured) (*run, error) {
	if u.Writer == nil { // What only compares has none.
		complete := *u
		complete.Writer = &apply.Writer{Client: u.Client, Backoff: retry.Backoff()}
		u = &complete
	}
	r := &run{Replacer: u, live: map[manifest.Key]*unstructured.Unstructured{}}
	for i := range known {
		r.set(&known[i])
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelRequests)
	for i := range wanted {
		if r.get(&wanted[i]) == nil {
			group.Go(func() error { return r.refresh(ctx, &wanted[i]) })
		}
	}
	return r, group.Wait()
}

func (r *run) set(o *unstructured.Unstructured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[manifest.KeyOf(o)] = o
}

// get returns the object as it was read or written last, nil if it does not exist.
func (r *run) get(o *unstructured.Unstructured) *unstructured.Unstructured {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live[manifest.KeyOf(o)]
}

func (r *run) forget(o *unstructured.Unstructured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, manifest.KeyOf(o))
}

// all returns the objects that exist, in a stable order.
func (r *run) all() []unstructured.Unstructured {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []unstructured.Unstructured
	for _, o := range r.live {
		list = append(list, *o)
	}
	slices.SortFunc(list, func(a, b unstructured.Unstructured) int {
		return compare(manifest.KeyOf(&a), manifest.KeyOf(&b))
	})
	return list
}

// execute executes the stages of a plan.
func (r *run) execute(ctx context.Context, stages []stage.Stage) error {
	for _, s := range stages {
		r.announce(s)
		if s.Name == stage.Cutover {
			if err := r.prepareWebhooks(ctx, s.Steps); err != nil {
				return err
			}
		}
		for batch := range batches(s.Steps) {
			group, groupCtx := errgroup.WithContext(ctx)
			group.SetLimit(parallelRequests)
			for _, step := range batch {
				group.Go(func() error { return r.step(groupCtx, step) })
			}
			if err := group.Wait(); err != nil {
				return err
			}
		}
	}
	return nil
}

// batches yields neighbors with the same action and kind.
func batches(steps []stage.Step) func(func([]stage.Step) bool) {
	return func(yield func([]stage.Step) bool) {
		for start := 0; start < len(steps); {
			end := start + 1
			for end < len(steps) && steps[end].Action == steps[start].Action && steps[end].Object.GetKind() == steps[start].Object.GetKind() {
				end++
			}
			if !yield(steps[start:end]) {
				return
			}
			start = end
		}
	}
}

// announce reports what a stage does; waiting reports itself.
func (r *run) announce(s stage.Stage) {
	if len(s.Steps) == 0 {
		return
	}
	switch s.Name {
	case stage.Definitions:
		r.report("writing %d CustomResourceDefinitions", len(s.Steps))
	case stage.Additions:
		r.report("writing what the new controllers need")
	case stage.Controllers:
		r.report("starting the new controllers")
	case stage.Cutover:
		r.report("switching to the new controllers")
	case stage.Removal:
		r.report("deleting %d objects that are no longer needed", len(s.Steps))
	}
}

func (r *run) step(ctx context.Context, s stage.Step) error {
	switch s.Action {
	case stage.Extend:
		return r.write(ctx, s.Object, merge.Extended)
	case stage.Write:
		if s.Object.GetKind() == manifest.KindCRD {
			return r.define(ctx, s.Object)
		}
		return r.write(ctx, s.Object, merge.Final)
	case stage.Roll:
		return r.roll(ctx, s.Object)
	case stage.Recreate:
		return r.recreate(ctx, s.Object)
	case stage.Await:
		return r.await(ctx, client.ObjectKeyFromObject(s.Object))
	case stage.Delete:
		err := r.Writer.Retry(ctx, func(ctx context.Context) error {
			return remove.Delete(ctx, r.Client, []unstructured.Unstructured{*s.Object})
		})
		if err == nil {
			r.forget(s.Object)
		}
		return err
	default:
		return fmt.Errorf("unknown action %q", s.Action)
	}
}

// define replaces a CustomResourceDefinition, after objects have been migrated that it could no longer serve.
func (r *run) define(ctx context.Context, desired *unstructured.Unstructured) error {
	if live := r.get(desired); live != nil {
		migration, err := storageversion.Plan(live, desired)
		if err != nil {
			return err
		}
		if migration != nil {
			migration.Retry = r.Writer.Retry
			err := migration.Run(ctx, r.Client, func(saved int) {
				r.report("storing objects of kind %s in version %s: %d", migration.Kind.Kind, migration.Kind.Version, saved)
			})
			if err != nil {
				return err
			}
			if err := r.refresh(ctx, desired); err != nil {
				return err
			}
		}
	}
	if err := r.write(ctx, desired, merge.Final); err != nil {
		return err
	}
	return apply.WaitEstablished(ctx, r.Client, desired.GetName())
}
