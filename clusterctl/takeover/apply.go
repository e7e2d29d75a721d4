package takeover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/blang/semver/v4"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// parallel is how many objects are changed at the same time, and tries how often one is that others change meanwhile.
const (
	parallel = 16
	tries    = 5
)

// Apply makes the changes of a plan that HandBack has made of o for a version. An object that others change meanwhile is read again and
// judged anew: one that has become an obstacle, such as a Machine that a user deletes, is an error. If it is interrupted or fails, the
// objects are as before or complete, and a new plan has the rest. done is called with the number of changes after each.
func Apply(ctx context.Context, c client.Client, to semver.Version, o Objects, p Plan, done func(int)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	var count atomic.Int64
	for _, change := range p.Changes {
		group.Go(func() error {
			if err := apply(ctx, c, to, o.Led, change); err != nil {
				return fmt.Errorf("cannot %s: %w", change, err)
			}
			if n := count.Add(1); done != nil {
				done(int(n))
			}
			return nil
		})
	}
	return group.Wait()
}

func apply(ctx context.Context, c client.Client, to semver.Version, led *metav1.MicroTime, planned Change) error {
	for try := 1; ; try++ {
		patch, err := planned.patch()
		if err != nil {
			return err
		}
		err = c.Patch(ctx, planned.Object.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
		if !apierrors.IsConflict(err) || try == tries {
			return client.IgnoreNotFound(err)
		}
		current := &metav1.PartialObjectMetadata{TypeMeta: planned.Object.TypeMeta}
		if err := c.Get(ctx, client.ObjectKeyFromObject(planned.Object), current); err != nil {
			return client.IgnoreNotFound(err)
		}
		current.TypeMeta = planned.Object.TypeMeta
		if found := obstacles(to, current, led); len(found) > 0 {
			return errors.New(found[0])
		}
		if planned = change(to, current); len(planned.Annotations)+len(planned.Finalizers) == 0 {
			return nil
		}
	}
}

// patch returns the merge patch of a change. It requires that the object is as it was read: finalizers are replaced as a whole.
func (c Change) patch() ([]byte, error) {
	metadata := map[string]any{"resourceVersion": c.Object.ResourceVersion, "uid": c.Object.UID}
	if len(c.Annotations) > 0 {
		annotations := map[string]any{}
		for _, key := range c.Annotations {
			annotations[key] = nil
		}
		metadata["annotations"] = annotations
	}
	if len(c.Finalizers) > 0 {
		metadata["finalizers"] = slices.DeleteFunc(slices.Clone(c.Object.Finalizers), func(f string) bool {
			return slices.Contains(c.Finalizers, f)
		})
	}
	return json.Marshal(map[string]any{"metadata": metadata})
}
