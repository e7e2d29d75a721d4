package apiversion

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Status implements client.StatusClient.
func (c *converting) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements client.SubResourceClientConstructor.
func (c *converting) SubResource(name string) client.SubResourceClient {
	return subresource{SubResourceClient: c.Client.SubResource(name), boundary: c.boundary, name: name}
}

// subresource is a client for a subresource. The bodies of others than status, such as a Scale, do not depend on the version of the object.
type subresource struct {
	client.SubResourceClient
	boundary *Boundary
	name     string
}

// Get implements client.SubResourceReader.
func (s subresource) Get(ctx context.Context, obj, body client.Object, opts ...client.SubResourceGetOption) error {
	t, err := s.boundary.translation(ctx, obj)
	if err != nil {
		return err
	}
	if t == nil {
		return s.SubResourceClient.Get(ctx, obj, body, opts...)
	}
	return t.byName(ctx, obj, func(stored client.Object) error { return s.SubResourceClient.Get(ctx, stored, body, opts...) })
}

// Create implements client.SubResourceWriter.
func (s subresource) Create(ctx context.Context, obj, body client.Object, opts ...client.SubResourceCreateOption) error {
	t, err := s.boundary.translation(ctx, obj)
	if err != nil {
		return err
	}
	if t == nil {
		return s.SubResourceClient.Create(ctx, obj, body, opts...)
	}
	return t.byName(ctx, obj, func(stored client.Object) error { return s.SubResourceClient.Create(ctx, stored, body, opts...) })
}

// Update implements client.SubResourceWriter.
func (s subresource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	t, err := s.boundary.translation(ctx, obj)
	if err != nil {
		return err
	}
	if t == nil {
		return s.SubResourceClient.Update(ctx, obj, opts...)
	}
	update := func(stored client.Object) error { return s.SubResourceClient.Update(ctx, stored, opts...) }
	if o := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts); o.SubResourceBody != nil {
		return t.byName(ctx, obj, update)
	}
	return t.whole(ctx, obj, update)
}

// Patch implements client.SubResourceWriter.
func (s subresource) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	t, err := s.boundary.translation(ctx, obj)
	if err != nil {
		return err
	}
	if t == nil {
		return s.SubResourceClient.Patch(ctx, obj, patch, opts...)
	}
	if o := (&client.SubResourcePatchOptions{}).ApplyOptions(opts); o.SubResourceBody != nil {
		return t.byName(ctx, obj, func(stored client.Object) error { return s.SubResourceClient.Patch(ctx, stored, patch, opts...) })
	}
	translated, err := t.patch(ctx, obj, patch, s.name)
	if err != nil {
		return err
	}
	return t.into(ctx, obj, func(stored client.Object) error { return s.SubResourceClient.Patch(ctx, stored, translated, opts...) })
}

// Apply implements client.SubResourceWriter.
func (s subresource) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	if err := s.boundary.checkApplied(ctx, obj); err != nil {
		return err
	}
	return s.SubResourceClient.Apply(ctx, obj, opts...)
}
