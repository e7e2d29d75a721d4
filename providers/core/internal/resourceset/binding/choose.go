package binding

import (
	"context"
	"errors"

	"k8s.io/utils/ptr"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/content"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// choose finds the ConfigMaps and Secrets to apply.
func (c *Controller) choose(ctx context.Context, s *scope) (step.Result, error) {
	if !Ready(s.cluster) {
		return step.Stop(), nil
	}
	for _, set := range s.sets {
		for _, ref := range Resources(set) {
			apply, err := c.pending(ctx, s, set, ref)
			s.fail(err)
			if apply {
				s.work = append(s.work, work{set: set, ref: ref})
			}
		}
	}
	if len(s.work) > 0 {
		return step.Done(), nil
	}
	if err := errors.Join(s.errs...); err != nil {
		return step.Done(), err
	}
	if !s.again.IsZero() {
		return step.WaitAtMost(c.requeue(s).After(), "manifests to be applied again"), nil
	}
	return step.Stop(), nil
}

// pending reports whether a ConfigMap or Secret must be applied now.
func (c *Controller) pending(ctx context.Context, s *scope, set *addonsv1.ClusterResourceSet, ref addonsv1.ResourceRef) (bool, error) {
	record := RecordOf(s.binding, set.Name, ref)
	if settled(set, record) {
		return false, nil
	}
	hash, err := c.contents.Hash(ctx, set.Namespace, ref)
	if _, missing := errors.AsType[*content.UnavailableError](err); missing {
		return false, nil // The condition of the ClusterResourceSet reports it, and its creation is an event.
	}
	if err != nil || !outdated(record, hash) {
		return false, err
	}
	last, _ := c.ledger.Of(s.key(), set.Name)
	failure, failed := last.Failures[ref]
	if !failed || failure.Hash != hash || record == nil {
		return true, nil // Without a record, the failure is that of a binding or ClusterResourceSet that was deleted.
	}
	if failure.Next.IsZero() {
		return false, nil
	}
	if c.Clock.Now().Before(failure.Next) {
		s.retryAt(failure.Next)
		return false, nil
	}
	return true, nil
}

// settled reports whether a ConfigMap or Secret is never applied again, whatever its content is.
func settled(set *addonsv1.ClusterResourceSet, record *addonsv1.ResourceBinding) bool {
	return record != nil && ptr.Deref(record.Applied, false) && set.Spec.Strategy != string(addonsv1.ClusterResourceSetStrategyReconcile)
}

// outdated reports whether content with this hash must be applied: it never was, it has changed, or applying it failed.
func outdated(record *addonsv1.ResourceBinding, hash string) bool {
	return record == nil || !ptr.Deref(record.Applied, false) || record.Hash != hash
}
