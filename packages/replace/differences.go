package replace

import (
	"context"
	"fmt"
	"maps"
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

// Difference is an object that Upgrade would create, change or delete.
type Difference struct {
	// Object describes it.
	Object string
	// Images are those of its containers that differ, as "new instead of old".
	Images []string
	// Other is set if more than these images differs.
	Other bool
}

// Differences are sorted by Object.
type Differences []Difference

// Objects returns the descriptions of the objects.
func (d Differences) Objects() []string {
	var list []string
	for i := range d {
		list = append(list, d[i].Object)
	}
	return list
}

// Differences returns the objects that Upgrade would create, change or delete. It writes nothing: whether an
// object that the API server completes differs is found out with a dry run.
func (u *Replacer) Differences(ctx context.Context, t Target) (Differences, error) {
	r, err := u.load(ctx, t.Components.Objects, t.present())
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	found := map[string]*Difference{}
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
				if differs != nil {
					differs.Object = manifest.Describe(step.Object)
					if before := found[differs.Object]; before != nil { // Some objects take two steps.
						differs.Other = differs.Other || before.Other
					}
					found[differs.Object] = differs
				}
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var list Differences
	for _, described := range slices.Sorted(maps.Keys(found)) {
		list = append(list, *found[described])
	}
	return list, nil
}

// differs returns what a step would write, nil for nothing.
func (r *run) differs(ctx context.Context, s stage.Step) (*Difference, error) {
	live := r.get(s.Object)
	switch {
	case s.Action == stage.Delete && live == nil:
		return nil, nil
	case s.Action == stage.Delete, live == nil, s.Action == stage.Recreate:
		return &Difference{Other: true}, nil
	}
	final := merge.Final(live, s.Object)
	if merge.Same(live, final) {
		return nil, nil
	}
	return r.wouldChange(ctx, live, final)
}

func (r *run) wouldChange(ctx context.Context, live, final *unstructured.Unstructured) (*Difference, error) {
	err := r.Client.Update(ctx, final, client.DryRunAll)
	switch {
	case err == nil && merge.Same(live, final):
		return nil, nil
	case err == nil:
		images := takeImages(live, final)
		return &Difference{Images: images, Other: !merge.Same(live, final)}, nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsInvalid(err):
		return &Difference{Other: true}, nil // The upgrade finds out.
	case final.GetKind() == "Secret":
		err = failsafe.Redacted(err)
	}
	return nil, fmt.Errorf("cannot compare %s: %w", manifest.Describe(final), err)
}

// takeImages gives the containers of an object the images that those of the same name have in live, and returns the differences.
func takeImages(live, o *unstructured.Unstructured) []string {
	var list []string
	for _, field := range []string{"initContainers", "containers"} {
		have, _, _ := unstructured.NestedSlice(live.Object, "spec", "template", "spec", field)
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", field)
		for _, item := range containers {
			container, ok := item.(map[string]any)
			i := slices.IndexFunc(have, func(other any) bool {
				c, isMap := other.(map[string]any)
				return ok && isMap && c["name"] == container["name"]
			})
			if i < 0 {
				continue
			}
			old, _, _ := unstructured.NestedString(have[i].(map[string]any), "image")
			if image, _, _ := unstructured.NestedString(container, "image"); image != old {
				list = append(list, fmt.Sprintf("%s instead of %s", image, old))
				container["image"] = old
			}
		}
		if len(containers) > 0 {
			_ = unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", field) // It was read there.
		}
	}
	return list
}
