package ssa

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// journey is an Applier that works on one object of a real API server.
type journey struct {
	*testing.T
	client  client.Client
	sent    *counting
	applier *Applier
	name    client.ObjectKey
}

func newJourney(t *testing.T) *journey {
	e := server.Start(t)
	e.Install(t, definition(t, machineCRD))
	sent := &counting{applyClient: e.Client}
	return &journey{
		T: t, client: e.Client, sent: sent, name: client.ObjectKey{Namespace: e.Namespace(t), Name: "m"},
		applier: NewApplier(sent, NewSchemas(e.Client, e.Client), ours),
	}
}

func (j *journey) desired(spec string) *unstructured.Unstructured {
	return object(j.T, "metadata: {name: "+j.name.Name+", namespace: "+j.name.Namespace+"}\nspec: "+spec)
}

func (j *journey) live() *unstructured.Unstructured {
	j.Helper()
	u := object(j.T, "")
	if err := j.client.Get(j.Context(), j.name, u); err != nil {
		j.Fatal(err)
	}
	return u
}

// apply applies spec and checks how many requests that took.
func (j *journey) apply(live *unstructured.Unstructured, spec string, requests int, opts ...Option) *unstructured.Unstructured {
	j.Helper()
	before := len(j.sent.requests)
	result, changed, err := j.applier.Apply(j.Context(), live, j.desired(spec), opts...)
	if err != nil {
		j.Fatal(err)
	}
	if got := len(j.sent.requests) - before; got != requests || changed != (requests > 0) {
		j.Errorf("spec %s took %d requests, changed %t; want %d requests", spec, got, changed, requests)
	}
	return result
}

func (j *journey) patch(fields string) {
	j.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(fields))
	if err := j.client.Patch(j.Context(), object(j.T, "metadata: {name: "+j.name.Name+", namespace: "+j.name.Namespace+"}"), patch, client.FieldOwner("provider")); err != nil {
		j.Fatal(err)
	}
}

func (j *journey) expectSpec(want map[string]any) {
	j.Helper()
	if diff := cmp.Diff(want, j.live().Object["spec"]); diff != "" {
		j.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestASteadyObjectCostsNothing(t *testing.T) {
	j := newJourney(t)
	created := j.apply(nil, "{size: big, taints: [{key: a}]}", 1)
	j.apply(created, "{size: big, taints: [{key: a}]}", 0)
	j.apply(j.live(), "{size: big, taints: [{key: a}]}", 0)
	j.patch(`{"spec": {"replicas": 5}}`)
	j.apply(j.live(), "{size: big, taints: [{key: a}]}", 0)
	j.apply(j.live(), "{size: small}", 1)
	j.apply(j.live(), "{size: small}", 0)
	j.patch(`{"spec": {"size": "big"}}`)
	j.apply(j.live(), "{size: small}", 1)
	j.expectSpec(map[string]any{"size": "small", "replicas": int64(5)})
}

func TestTwoCreationsResultInOneObject(t *testing.T) {
	j := newJourney(t)
	first := j.apply(nil, "{size: big}", 1)
	// The cache does not show the object yet, so it is created once more.
	second := j.apply(nil, "{size: big}", 1)
	if first.GetUID() != second.GetUID() || first.GetResourceVersion() != second.GetResourceVersion() {
		t.Errorf("the second creation changed the object: %s at %s became %s at %s",
			first.GetUID(), first.GetResourceVersion(), second.GetUID(), second.GetResourceVersion())
	}
}

func TestADeletedObjectIsNotRecreated(t *testing.T) {
	j := newJourney(t)
	stale := j.apply(nil, "{size: big}", 1)
	if err := j.client.Delete(t.Context(), stale.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	_, _, err := j.applier.Apply(t.Context(), stale, j.desired("{size: small}"))
	if !apierrors.IsConflict(err) {
		t.Errorf("applying to a deleted object: error is %v, want a conflict", err)
	}
	j.apply(nil, "{size: other}", 1)
	if _, _, err = j.applier.Apply(t.Context(), stale, j.desired("{size: small}")); err == nil {
		t.Error("applying to what was replaced is not an error")
	}
	j.expectSpec(map[string]any{"size": "other", "replicas": int64(1)})
}

func TestZeroFieldsAreLeftToTheProvider(t *testing.T) {
	j := newJourney(t)
	leave := LeaveZero([]string{"spec", "endpoint", "host"}, []string{"spec", "endpoint", "port"})
	const template = "{size: big, endpoint: {host: '', port: 0}}"
	stale := j.apply(nil, template, 1, leave)
	j.expectSpec(map[string]any{"size": "big", "replicas": int64(1), "endpoint": map[string]any{"host": "", "port": int64(0)}})
	j.apply(j.live(), template, 0, leave)

	j.patch(`{"spec": {"endpoint": {"host": "lb", "port": 6443}}}`)
	// What was read before the provider wrote must not put the zeroes back.
	_, _, err := j.applier.Apply(t.Context(), stale, j.desired("{size: small, endpoint: {host: '', port: 0}}"), leave)
	if !apierrors.IsConflict(err) {
		t.Errorf("applying on a stale read: error is %v, want a conflict", err)
	}
	j.apply(j.live(), template, 0, leave)
	j.apply(j.live(), "{size: small, endpoint: {host: '', port: 0}}", 1, leave)
	j.expectSpec(map[string]any{"size": "small", "replicas": int64(1), "endpoint": map[string]any{"host": "lb", "port": int64(6443)}})
}

func TestAnotherVersionIsAppliedOnce(t *testing.T) {
	j := newJourney(t)
	j.apply(nil, "{size: big, zones: [a]}", 1)
	read := func() *unstructured.Unstructured {
		u := object(t, "")
		u.SetAPIVersion("ssa.test/v2")
		if err := j.client.Get(t.Context(), j.name, u); err != nil {
			t.Fatal(err)
		}
		return u
	}
	desired := j.desired("{size: big, zones: [a]}")
	desired.SetAPIVersion("ssa.test/v2")
	for i, want := range []bool{true, false} {
		if _, changed, err := j.applier.Apply(t.Context(), read(), desired); err != nil || changed != want {
			t.Errorf("apply %d at the new version: changed %t, error %v; want %t", i, changed, err, want)
		}
	}
	if len(j.sent.requests) != 2 {
		t.Errorf("%d requests, want 2", len(j.sent.requests))
	}
}
