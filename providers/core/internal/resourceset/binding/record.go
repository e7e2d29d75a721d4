package binding

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// recordTries is how often writing the results is tried. Otherwise, the manifests would be applied again.
const recordTries = 5

// record writes the results to the binding. A conflict means that the entry of another ClusterResourceSet was removed, or that of this
// one, whose results are dropped then.
func (c *Controller) record(ctx context.Context, s *scope) (step.Result, error) {
	for try := 1; ; try++ {
		uid := s.binding.UID
		err := c.Patch(ctx, s.binding, func() { s.addResults() }, step.IfUnchanged)
		if err == nil {
			c.AwaitVisible(ctx, s.binding) // A reconcile that does not find the results applies the manifests again.
			return c.requeue(s), errors.Join(s.errs...)
		}
		if !apierrors.IsConflict(err) || try == recordTries {
			return step.Done(), fmt.Errorf("recording what was applied: %w", err)
		}
		if err := c.reread(ctx, s, uid); err != nil {
			return step.Done(), err
		}
	}
}

// reread reads the binding from the API server. It is an error if it is another one.
func (c *Controller) reread(ctx context.Context, s *scope, uid types.UID) error {
	live := &addonsv1.ClusterResourceSetBinding{}
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(s.binding), live); err != nil {
		return fmt.Errorf("reading the binding of Cluster %s: %w", s.cluster.Name, err)
	}
	if live.UID != uid {
		return step.Stale("the binding of Cluster %s was deleted and created again", s.cluster.Name)
	}
	s.binding = live
	return nil
}

// addResults adds the results to entries of the binding. A failure that is recorded already is not recorded again, or the binding would be
// written after every attempt.
func (s *scope) addResults() {
	for _, set := range slices.Sorted(maps.Keys(s.results)) {
		e := s.entry(set)
		if e == nil {
			continue
		}
		for _, result := range s.results[set] {
			before := e.GetResource(result.ResourceRef)
			if before != nil && !ptr.Deref(before.Applied, false) && !ptr.Deref(result.Applied, false) && before.Hash == result.Hash {
				continue
			}
			e.SetBinding(result)
		}
	}
}
