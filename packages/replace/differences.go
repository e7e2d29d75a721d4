package replace

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/replace/merge"
	"sigs.k8s.io/cluster-api/packages/replace/stage"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

// Differences returns the objects that Upgrade would create, change or delete, described and sorted. It writes nothing: whether an
// object that the API server completes differs is found out with a dry run.
func (u *Replacer) Differences(ctx context.Context, t Target) ([]string, error) {
	r, err := u.load(ctx, t.Components.Objects, t.present())
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	found := map[string]bool{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelRequests)
	for _, s := range stage.Plan(t.Components.Objects, r.all()) {
		for _, step := range s.Steps {
			if step.Action == stage.Await || step.Action == stage.Extend {
				continue
			}
			group.Go(func() error {
				differs, err := r.differs(ctx, step)
				mu.Lock()
				defer mu.Unlock()
				if differs {
					found[manifest.Describe(step.Object)] = true
				}
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var list []string
	for described := range found {
		list = append(list, described)
	}
	slices.Sort(list)
	return list, nil
}

// differs reports whether a step would write anything.
func (r *run) differs(ctx context.Context, s stage.Step) (bool, error) {
	live := r.get(s.Object)
	switch {
	case s.Action == stage.Delete:
		return live != nil, nil
	case live == nil, s.Action == stage.Recreate:
		return true, nil
	}
	final := merge.Final(live, s.Object)
	if merge.Same(live, final) {
		return false, nil
	}
	return r.wouldChange(ctx, live, final)
}

func (r *run) wouldChange(ctx context.Context, live, final *unstructured.Unstructured) (bool, error) {
	err := r.Client.Update(ctx, final, client.DryRunAll)
	switch {
	case err == nil:
		return !merge.Same(live, final), nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsInvalid(err):
		return true, nil // The upgrade finds out.
	case final.GetKind() == "Secret":
		err = failsafe.Redacted(err)
	}
	return false, fmt.Errorf("cannot compare %s: %w", manifest.Describe(final), err)
}
