package ssa

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// definitions are CustomResourceDefinitions in memory, with a count of how often each was read whole.
type definitions struct {
	crds  map[string]*apiextensionsv1.CustomResourceDefinition
	mu    sync.Mutex
	reads int
}

func define(crds ...*apiextensionsv1.CustomResourceDefinition) *definitions {
	d := &definitions{crds: map[string]*apiextensionsv1.CustomResourceDefinition{}}
	for _, crd := range crds {
		d.crds[crd.Name] = crd
	}
	return d
}

func (d *definitions) Revision(_ context.Context, name string) (types.UID, int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	crd, ok := d.crds[name]
	if !ok {
		return "", 0, apierrors.NewNotFound(runtimeschema.GroupResource{Resource: "customresourcedefinitions"}, name)
	}
	return crd.UID, crd.Generation, nil
}

func (d *definitions) Get(_ context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads++
	return d.crds[name], nil
}

// counting is a client that counts applies.
type counting struct {
	applyClient
	requests []*unstructured.Unstructured
}

func (c *counting) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	encoded, err := obj.(interface{ MarshalJSON() ([]byte, error) }).MarshalJSON()
	if err != nil {
		return err
	}
	sent := &unstructured.Unstructured{}
	if err := sent.UnmarshalJSON(encoded); err != nil {
		return err
	}
	c.requests = append(c.requests, sent)
	return c.applyClient.Apply(ctx, obj, opts...)
}

// webhook stands in for an API server with a mutating webhook: it upper-cases size whatever is applied, which no schema
// tells.
type webhook struct {
	stored *unstructured.Unstructured
	err    error
}

func (w *webhook) Apply(_ context.Context, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	if w.err != nil {
		return w.err
	}
	into := obj.(interface{ SetUnstructuredContent(map[string]any) })
	after := w.stored.DeepCopy()
	size, _, err := unstructured.NestedString(obj.(runtime.Unstructured).UnstructuredContent(), "spec", "size")
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(after.Object, strings.ToUpper(size), "spec", "size"); err != nil {
		return err
	}
	if !cmp.Equal(after.Object, w.stored.Object) {
		revision, err := strconv.Atoi(after.GetResourceVersion())
		if err != nil {
			return err
		}
		after.SetResourceVersion(strconv.Itoa(revision + 1))
	}
	w.stored = after
	into.SetUnstructuredContent(after.DeepCopy().Object)
	return nil
}

func (w *webhook) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errors.New("nothing becomes empty")
}

func TestChangesByWebhooksAreAppliedOnce(t *testing.T) {
	server := &webhook{stored: object(t, live)}
	c := &counting{applyClient: server}
	a := NewApplier(c, newSchemas(define(definition(t, machineCRD))), ours)
	apply := func(live *unstructured.Unstructured, size string) (requests int, changed bool) {
		t.Helper()
		before := len(c.requests)
		_, changed, err := a.Apply(t.Context(), live, object(t, strings.Replace(applied, "size: big", "size: "+size, 1)))
		if err != nil {
			t.Fatal(err)
		}
		return len(c.requests) - before, changed
	}
	touched := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		u := server.stored.DeepCopy()
		u.SetResourceVersion(u.GetResourceVersion() + "0")
		change(u)
		return u
	}
	first := server.stored.DeepCopy()
	tests := []struct {
		reason   string
		live     func() *unstructured.Unstructured
		size     string
		requests int
		changed  bool
	}{
		{"a change", func() *unstructured.Unstructured { return first }, "huge", 1, true},
		{"the cache does not show it yet", func() *unstructured.Unstructured { return first }, "huge", 0, false},
		{"the cache has what the webhook changed: applied once more", func() *unstructured.Unstructured { return server.stored.DeepCopy() }, "huge", 1, false},
		{"that changed nothing, so it is known", func() *unstructured.Unstructured { return server.stored.DeepCopy() }, "huge", 0, false},
		{"a change of status does not matter", func() *unstructured.Unstructured {
			return touched(func(u *unstructured.Unstructured) { u.Object["status"] = map[string]any{"ready": false} })
		}, "huge", 0, false},
		{"nor does a change of what is not applied", func() *unstructured.Unstructured {
			return touched(func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["replicas"] = int64(9) })
		}, "huge", 0, false},
		{"a change of what is applied does", func() *unstructured.Unstructured {
			return touched(func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["size"] = "small" })
		}, "huge", 1, true},
		{"so does another wish", func() *unstructured.Unstructured { return server.stored.DeepCopy() }, "tiny", 1, true},
	}
	for _, tc := range tests {
		requests, changed := apply(tc.live(), tc.size)
		if requests != tc.requests || changed != tc.changed {
			t.Errorf("%s: %d requests and changed %t, want %d and %t", tc.reason, requests, changed, tc.requests, tc.changed)
		}
	}
}

// stamping is a webhook that also notes every write in the object.
type stamping struct{ webhook }

func (s *stamping) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	annotations := s.stored.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["written"] += "x"
	s.stored = s.stored.DeepCopy()
	s.stored.SetAnnotations(annotations)
	s.stored.SetResourceVersion(s.stored.GetResourceVersion() + "0")
	return s.webhook.Apply(ctx, obj, opts...)
}

func TestAWebhookThatModifiesEveryWriteCausesNoLoop(t *testing.T) {
	server := &stamping{webhook{stored: object(t, live)}}
	c := &counting{applyClient: server}
	a := NewApplier(c, newSchemas(define(definition(t, machineCRD))), ours)
	for range 20 { // Each write is an event with the current object.
		if _, _, err := a.Apply(t.Context(), server.stored.DeepCopy(), object(t, strings.Replace(applied, "size: big", "size: huge", 1))); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.requests) != 2 {
		t.Errorf("%d requests, want 2: the change, and one that finds that the webhook leaves nothing to do", len(c.requests))
	}
}

func TestAnUnchangedObjectCostsOneDryRun(t *testing.T) {
	server := &webhook{stored: object(t, strings.Replace(live, "size: big", "size: HUGE", 1))}
	c := &counting{applyClient: server}
	a := NewApplier(c, newSchemas(define(definition(t, machineCRD))), ours)
	now := server.stored.DeepCopy()
	now.SetUID("uid")
	newer := now.DeepCopy()
	newer.SetResourceVersion("99")
	for _, tc := range []struct {
		reason   string
		live     *unstructured.Unstructured
		size     string
		refusal  error
		requests int
		want     bool
	}{
		{"the cache has what the webhook changed", now, "huge", nil, 1, true},
		{"that is remembered", now, "huge", nil, 0, true},
		{"until the object changes", newer, "huge", nil, 1, true},
		{"or what is wanted, which here is a change", newer, "tiny", nil, 1, false},
		{"which is remembered, too", newer, "tiny", nil, 0, false},
		{"an immutable object rejects it as invalid", now, "small", apierrors.NewInvalid(runtimeschema.GroupKind{}, "m", nil), 1, false},
	} {
		server.err = tc.refusal
		server.stored = object(t, strings.Replace(live, "size: big", "size: HUGE", 1))
		before := len(c.requests)
		got, err := a.Unchanged(t.Context(), tc.live, object(t, strings.Replace(applied, "size: big", "size: "+tc.size, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if requests := len(c.requests) - before; got != tc.want || requests != tc.requests {
			t.Errorf("%s: %t with %d requests, want %t with %d", tc.reason, got, requests, tc.want, tc.requests)
		}
	}
}

// TestAFailedDryRunIsAnError: an answer would have Machines replaced.
func TestAFailedDryRunIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		err    error
	}{
		"Forbidden":  {"no permission, a quota, or a policy that forbids writes for a while", apierrors.NewForbidden(runtimeschema.GroupResource{}, "m", errors.New("maintenance"))},
		"BadRequest": {"a webhook that does not understand the request", apierrors.NewBadRequest("what?")},
		"Timeout":    {"a webhook that does not respond", apierrors.NewTimeoutError("webhook", 1)},
		"Internal":   {"a webhook that is not running", apierrors.NewInternalError(errors.New("failed calling webhook"))},
		"TooMany":    {"an API server with too much to do", apierrors.NewTooManyRequests("later", 1)},
		"Conflict":   {"another client wrote it at the same time", apierrors.NewConflict(runtimeschema.GroupResource{}, "m", errors.New("changed"))},
		"Connection": {"the connection is refused", errors.New("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			client := &counting{applyClient: &webhook{stored: object(t, live), err: c.err}}
			a := NewApplier(client, newSchemas(define(definition(t, machineCRD))), ours)
			for range 2 {
				if _, err := a.Unchanged(t.Context(), object(t, live), object(t, strings.Replace(applied, "size: big", "size: huge", 1))); !errors.Is(err, c.err) {
					t.Errorf("%s: err = %v, want that of the API server", c.reason, err)
				}
			}
			if len(client.requests) != 2 {
				t.Errorf("%s: %d requests, want 2: nothing is known, so it is asked again", c.reason, len(client.requests))
			}
		})
	}
}

func TestAFailedApplyIsTriedAgain(t *testing.T) {
	server := &webhook{stored: object(t, live), err: errors.New("refused")}
	c := &counting{applyClient: server}
	a := NewApplier(c, newSchemas(define(definition(t, machineCRD))), ours)
	desired := object(t, strings.Replace(applied, "size: big", "size: huge", 1))
	for range 2 {
		if _, _, err := a.Apply(t.Context(), object(t, live), desired); err == nil || !strings.Contains(err.Error(), "applying Machine ns/m: refused") {
			t.Fatalf("error is %v, want one that names the object", err)
		}
	}
	if len(c.requests) != 2 {
		t.Errorf("%d requests, want 2", len(c.requests))
	}
}

func TestIncomparableObjectsAreApplied(t *testing.T) {
	c := &counting{applyClient: &webhook{stored: object(t, live)}}
	a := NewApplier(c, newSchemas(define(definition(t, machineCRD))), ours)
	stale := object(t, strings.Replace(live, "size: big", "size: {cpu: 1}", 1))
	if _, _, err := a.Apply(t.Context(), stale, object(t, applied)); err != nil || len(c.requests) != 1 {
		t.Errorf("%d requests, error %v; want 1 and none", len(c.requests), err)
	}
}

func TestSchemasAreReadOncePerGeneration(t *testing.T) {
	crd := definition(t, machineCRD)
	crd.UID, crd.Generation = "one", 1
	d := define(crd)
	s := newSchemas(d)
	kind := runtimeschema.GroupVersionKind{Group: "ssa.test", Version: "v1", Kind: "Machine"}
	get := func() *kindSchema {
		t.Helper()
		schema, err := s.get(t.Context(), kind)
		if err != nil {
			t.Fatal(err)
		}
		return schema
	}
	var wait sync.WaitGroup
	for range 32 {
		wait.Go(func() { get() })
	}
	wait.Wait()
	first := get()
	if d.reads != 1 {
		t.Errorf("the definition was read %d times, want once", d.reads)
	}
	d.crds[crd.Name].Generation = 2
	if second, third := get(), get(); second == first || third != second || d.reads != 2 {
		t.Errorf("after a new generation the definition was read %d times, want twice", d.reads)
	}
	d.crds[crd.Name].UID = "two" // deleted and recreated
	if get(); d.reads != 3 {
		t.Errorf("after a new definition it was read %d times, want three times", d.reads)
	}
}

func TestMissingSchemas(t *testing.T) {
	blank := definition(t, strings.NewReplacer("Machine", "Blank", "machine", "blank").Replace(machineCRD))
	blank.Spec.Versions[0].Schema = nil
	s := newSchemas(define(definition(t, machineCRD), blank))
	for _, tc := range []struct{ version, kind, want string }{
		{"v1", "Gadget", "CustomResourceDefinition gadgets.ssa.test"},
		{"v9", "Machine", "CustomResourceDefinition machines.ssa.test has no version v9"},
		{"v1", "Blank", "CustomResourceDefinition blanks.ssa.test: version v1: reading the schema: it has none"},
	} {
		_, err := s.get(t.Context(), runtimeschema.GroupVersionKind{Group: "ssa.test", Version: tc.version, Kind: tc.kind})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error is %v, want one with %q", tc.kind, err, tc.want)
		}
	}
}
