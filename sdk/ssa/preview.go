package ssa

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Preview returns the object that Apply would result in, computed by the schema, without a request: what webhooks and policies would
// change is missing. In managedFields, only the entry of the field manager is up to date. live and desired are not modified.
func (a *Applier) Preview(
	ctx context.Context, live, desired *unstructured.Unstructured, opts ...Option,
) (*unstructured.Unstructured, error) {
	s, err := a.schema(ctx, desired)
	if err != nil {
		return nil, err
	}
	c, err := a.compare(ctx, s, live, desired, opts)
	if err != nil {
		return nil, err
	}
	out, err := c.preview()
	if err != nil {
		return nil, err
	}
	return a.versions.In(ctx, desired.GroupVersionKind().Version, out)
}

// preview returns the object that the apply results in, in the version that is compared.
func (c *comparison) preview() (*unstructured.Unstructured, error) {
	s, live := c.schema, c.live
	if live == nil {
		out := c.config.DeepCopy()
		c.complete(out.Object)
		return out, c.recordOwner(out, nil)
	}
	if c.beforeErr != nil {
		return nil, c.beforeErr
	}
	before, err := c.managers()
	if err != nil {
		return nil, describe(live, "cannot be compared", err)
	}
	content, _, err := c.merged(before)
	if err != nil {
		return nil, err
	}
	out := live.DeepCopy()
	for name := range out.Object {
		if name != "status" || !s.statusApart {
			delete(out.Object, name)
		}
	}
	for name, value := range content {
		if name != "status" || !s.statusApart {
			out.Object[name] = value
		}
	}
	return out, c.recordOwner(out, live.GetManagedFields())
}

// recordOwner sets managedFields to others, with what the manager owns after the apply.
func (c *comparison) recordOwner(out *unstructured.Unstructured, others []metav1.ManagedFieldsEntry) error {
	var fields bytes.Buffer
	if err := c.owned.ToJSONStream(&fields); err != nil {
		return fmt.Errorf("encoding the fields of %s: %w", c.manager, err)
	}
	kept := slices.DeleteFunc(slices.Clone(others), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == c.manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
	})
	out.SetManagedFields(append(kept, metav1.ManagedFieldsEntry{
		Manager: c.manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: c.config.GetAPIVersion(),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields.String()),
	}))
	return nil
}
