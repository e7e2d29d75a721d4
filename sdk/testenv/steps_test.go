package testenv

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestUndocumented(t *testing.T) {
	const steps = "// Package p has steps:\n//\n//\tone    is done\n//\ttwo    is done, and\n//\t       this\n"
	for _, tt := range []struct {
		reason  string
		comment string
		names   string
		want    string // a part of the only problem
	}{
		{reason: "all steps are listed in order", comment: steps, names: "one two"},
		{reason: "a step is missing", comment: steps, names: "one two three", want: "does not list"},
		{reason: "a step does not exist", comment: steps, names: "one", want: "does not list"},
		{reason: "the order differs", comment: steps, names: "two one", want: "does not list"},
		{reason: "a step of a second list or controller is listed again by its name", comment: steps + "//\n//\ttwo\n//\tthree  is done\n", names: "one two two three"},
		{reason: "but not explained again", comment: steps + "//\ttwo    as above\n", names: "one two two", want: "explains step two twice"},
		{reason: "every step is explained once", comment: steps + "//\tthree\n", names: "one two three", want: "does not explain step three"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			problems := undocumented(tt.comment, strings.Fields(tt.names))
			if tt.want == "" && len(problems) > 0 || tt.want != "" && (len(problems) != 1 || !strings.Contains(problems[0], tt.want)) {
				t.Errorf("problems %q, want one with %q", problems, tt.want)
			}
		})
	}
}

func TestWithoutFiles(t *testing.T) {
	folder := fstest.MapFS{"node.go": {}, "deletenode.go": {}}
	got := withoutFiles(folder, []string{"node", "delete-node", "finish", "other", "finish"}, []string{"other", "node", "gone"})
	want := []string{
		"step finish is not in a file of its own: move it to finish.go",
		"step node needs no exception: it is in a file of its own, or does not exist",
		"step gone needs no exception: it is in a file of its own, or does not exist",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
