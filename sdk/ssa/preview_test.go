package ssa

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
				live = j.apply(live, next, 1)
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
