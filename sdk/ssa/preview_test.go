package ssa

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestPreviewIsWhatApplyResultsIn compares previews with the results of the API server: of a creation, and of an apply that changes a
// field and removes another.
func TestPreviewIsWhatApplyResultsIn(t *testing.T) {
	j := newJourney(t)
	var live *unstructured.Unstructured
	for _, spec := range []string{"{size: big, taints: [{key: a}]}", "{taints: [{key: b}]}"} {
		preview, err := j.applier.Preview(j.Context(), live, j.desired(spec))
		if err != nil {
			t.Fatal(err)
		}
		live = j.apply(live, spec, 1)
		if diff := cmp.Diff(live.Object["spec"], preview.Object["spec"]); diff != "" {
			t.Errorf("%s (-API server +preview):\n%s", spec, diff)
		}
		// The preview is as good as the result for the next comparison.
		diff, err := j.applier.Plan(j.Context(), preview, j.desired(spec))
		if err != nil || diff.Changed() {
			t.Errorf("%s: applying the same to the preview changes nothing, got %v, %v", spec, diff, err)
		}
	}
}

// TestEmptying applies what empties maps and lists. A server-side apply alone makes them null, which most schemas reject.
func TestEmptying(t *testing.T) {
	const full = "{size: big, endpoint: {host: a, port: 1}, zones: [a], labels: {a: {b: c}}, needed: {inner: {x: 1}}, free: {a: {b: {c: 1}}}, disks: [{name: root, options: {a: b}}, {name: data}]}"
	world := newJourney(t)
	for reason, spec := range map[string]string{
		"an object":                            "{needed: {inner: {x: 1}}, endpoint: {}}",
		"a set":                                "{needed: {inner: {x: 1}}, zones: []}",
		"a list that merges by key":            "{needed: {inner: {x: 1}}, disks: []}",
		"a map":                                "{needed: {inner: {x: 1}}, labels: {}}",
		"a map in a map":                       "{needed: {inner: {x: 1}}, labels: {a: {}}}",
		"a required object":                    "{needed: {}}",
		"an object in a required one":          "{needed: {inner: {}}}",
		"a map in an item of a list":           "{needed: {inner: {x: 1}}, disks: [{name: data, options: {}}, {name: root, options: {}}]}",
		"a part of a tree without a schema":    "{needed: {inner: {x: 1}}, free: {a: {b: {}}}}",
		"all of a tree without a schema":       "{needed: {inner: {x: 1}}, free: {}}",
		"a null where one is allowed":          "{needed: {inner: {x: 1}}, maybe: null, endpoint: {}}",
		"everything at once":                   "{needed: {}, endpoint: {}, zones: [], labels: {}, free: {}, disks: []}",
		"everything disappears but the needed": "{needed: {}}",
		"everything else stays":                "{size: big, endpoint: {}, zones: [a], labels: {a: {b: c}}, needed: {inner: {x: 1}}, free: {a: {b: {c: 1}}}, disks: [{name: root, options: {}}, {name: data}]}",
	} {
		t.Run(reason, func(t *testing.T) {
			j := &journey{T: t, client: world.client, sent: world.sent, applier: world.applier, name: world.name}
			j.name.Name = strings.ReplaceAll(reason, " ", "-")
			live := j.apply(nil, full, 1)
			for _, next := range []string{spec, full, spec} {
				preview, err := j.applier.Preview(j.Context(), live, j.desired(next))
				if err != nil {
					t.Fatal(err)
				}
				planned, err := j.applier.Plan(j.Context(), live, j.desired(next))
				if err != nil || !planned.SpecChanged() {
					t.Errorf("plan: %v, %v, want changes", planned, err)
				}
				before := live.GetGeneration()
				live = j.apply(live, next, 1)
				if got := live.GetGeneration() - before; got != 1 {
					t.Errorf("the spec has changed %d times: another controller may act on what is neither the old nor the new one", got)
				}
				j.expectSpec(preview.Object["spec"].(map[string]any))
				created := j.desired(next)
				created.SetName("new")
				if err := j.client.Create(t.Context(), created, client.DryRunAll); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(created.Object["spec"], live.Object["spec"]); diff != "" {
					t.Errorf("the result differs from a new object (-new +applied):\n%s", diff)
				}
				if again, err := j.applier.Plan(t.Context(), j.live(), j.desired(next)); err != nil || again.Changed() {
					t.Errorf("afterwards, %+v is to change, %v", again, err)
				}
				if owners := entries(j.live()); len(owners) != 1 {
					t.Errorf("fields have other owners, too: %v", owners)
				}
			}
		})
	}
}

// interrupted fails all requests after the first ones.
type interrupted struct {
	applyClient
	left int
}

func (i *interrupted) next() error {
	if i.left--; i.left < 0 {
		return errors.New("interrupted")
	}
	return nil
}

func (i *interrupted) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := i.next(); err != nil {
		return err
	}
	return i.applyClient.Apply(ctx, obj, opts...)
}

func (i *interrupted) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := i.next(); err != nil {
		return err
	}
	return i.applyClient.Patch(ctx, obj, patch, opts...)
}

// TestEmptyingIsContinued interrupts what empties a map after each of its requests. Only the first changes the spec, and the next apply
// completes the others.
func TestEmptyingIsContinued(t *testing.T) {
	const spec = "{needed: {}, size: small, labels: {}}"
	world := newJourney(t)
	for requests := range 4 {
		j := &journey{T: t, client: world.client, sent: world.sent, applier: world.applier, name: world.name}
		j.name.Name = fmt.Sprintf("interrupted-%d", requests)
		live := j.apply(nil, "{needed: {inner: {x: 1}}, size: big, labels: {a: {b: c}}}", 1)
		stopping := NewApplier(&interrupted{world.sent, requests}, NewSchemas(world.client, world.client), ours)
		if _, _, err := stopping.Apply(t.Context(), live, j.desired(spec)); (err == nil) != (requests == 3) {
			t.Fatalf("after %d requests: error %v", requests, err)
		}
		if got, _, _ := unstructured.NestedString(j.live().Object, "spec", "size"); (got == "small") != (requests > 0) {
			t.Errorf("after %d requests: the size is %s", requests, got)
		}
		if diff, err := j.applier.Plan(t.Context(), j.live(), j.desired(spec)); err != nil || diff.Changed() == (requests == 3) || diff.SpecChanged() != (requests == 0) {
			t.Errorf("after %d requests, %+v is to change, %v", requests, diff, err)
		}
		if _, _, err := j.applier.Apply(t.Context(), j.live(), j.desired(spec)); err != nil {
			t.Fatal(err)
		}
		if owners := entries(j.live()); len(owners) != 1 || j.live().GetGeneration() != 2 {
			t.Errorf("after %d requests: generation %d, owners %v", requests, j.live().GetGeneration(), owners)
		}
	}
}
