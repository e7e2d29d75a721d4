package ssa

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// answer is the result of a dry run, which holds as long as the verdict is the same.
type answer struct {
	verdict
	same bool
}

// Unchanged reports whether applying desired would leave everything outside of live's metadata as it is, by a dry run.
// Plan cannot determine that if mutating webhooks and policies modify what is applied. The dry run is only repeated
// after the resource version of live or desired changed.
//
// A dry run that is rejected as invalid counts as a change, because immutable objects reject changes. Any other failure is
// an error: quotas, missing permissions or policies that temporarily forbid all writes are not about the object.
func (a *Applier) Unchanged(ctx context.Context, live, desired *unstructured.Unstructured, opts ...Option) (bool, error) {
	s, err := a.schema(ctx, desired)
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
	c, err := a.compare(ctx, s, live, desired, opts)
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
	if c.empties() != nil {
		return false, nil
	}
	result := c.request()
	err = a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(result), client.FieldOwner(a.manager),
		client.ForceOwnership, client.DryRunAll)
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

// Keep returns desired with the content of live: applying it only changes the metadata of live. The manager
// keeps owning the fields that it applied before. The result is in the version that is stored, which has the fields that are owned.
func (a *Applier) Keep(ctx context.Context, live, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	s, err := a.schema(ctx, desired)
	if err != nil {
		return nil, err
	}
	c, err := a.compare(ctx, s, live, desired, nil)
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
		return nil, describe(live, "cannot be compared", fmt.Errorf("%s owns none of its fields", a.manager))
	}
	out := c.config.DeepCopy()
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
