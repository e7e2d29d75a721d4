package ssa

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// answer is the outcome of a dry run, for as long as the question stays the same.
type answer struct {
	verdict
	same bool
}

// Unchanged asks the API server whether applying desired would leave everything outside of live's metadata as it is.
// Plan cannot know that where mutating webhooks and policies rewrite what is applied. It costs one dry run, and nothing
// as long as the resource version of live and desired stay what they were.
//
// A dry run that is rejected as invalid counts as a change: that is how immutable objects reject one. Any other failure is
// an error. A quota, missing permissions or a policy that forbids all writes for a while say nothing about the object.
func (a *Applier) Unchanged(ctx context.Context, live, desired *unstructured.Unstructured, opts ...Option) (bool, error) {
	s, err := a.schemas.get(ctx, desired.GroupVersionKind())
	if err != nil {
		return false, err
	}
	asked, _, err := a.judge(s, live, desired, opts)
	if err != nil {
		return false, err
	}
	if known, ok := a.answers.Get(live.GetUID()); ok && known.(answer).verdict == asked {
		return known.(answer).same, nil
	}
	c, err := newComparison(s, live, desired, a.manager, opts)
	if err != nil {
		return false, err
	}
	same, err := a.dryRun(ctx, c)
	if err == nil {
		a.answers.Add(live.GetUID(), answer{asked, same})
	}
	return same, err
}

func (a *Applier) dryRun(ctx context.Context, c *comparison) (same bool, err error) {
	result := c.request()
	err = a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(result), client.FieldOwner(a.manager), client.ForceOwnership, client.DryRunAll)
	switch {
	case apierrors.IsInvalid(err):
		return false, nil
	case err != nil:
		return false, describe(c.live, "cannot be compared", fmt.Errorf("dry run: %w", err))
	}
	for name, equal := range equalParts(compared(c.schema, c.live), compared(c.schema, result)) {
		if !equal && name != "metadata" {
			return false, nil
		}
	}
	return true, nil
}

// Keep is desired with the content that live has: applying it changes the metadata of live and nothing else. The manager
// keeps the fields that it applied before.
func (a *Applier) Keep(ctx context.Context, live, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	s, err := a.schemas.get(ctx, desired.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	c, err := newComparison(s, live, desired, a.manager, nil)
	if err != nil {
		return nil, err
	}
	if c.beforeErr != nil {
		return nil, c.beforeErr
	}
	fields := c.last
	if fields.Empty() {
		fields = c.owned
	}
	kept, ok := c.before.ExtractItems(fields.Leaves(), typed.WithAppendKeyFields()).AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, describe(live, "cannot be compared", fmt.Errorf("nothing of it is %s's", a.manager))
	}
	out := desired.DeepCopy()
	for name := range out.Object {
		if name != "apiVersion" && name != "kind" && name != "metadata" {
			delete(out.Object, name)
		}
	}
	for name, value := range kept {
		if name != "apiVersion" && name != "kind" && name != "metadata" {
			out.Object[name] = value
		}
	}
	return out, nil
}
