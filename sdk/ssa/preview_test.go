package ssa

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
