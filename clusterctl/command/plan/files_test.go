package plan

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/providers/core/topologyplan"
)

// thing returns an object with a size and managed fields.
func thing(name string, size int64) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.io/v1", "kind": "Thing", "metadata": map[string]any{"namespace": "ns", "name": name}, "spec": map[string]any{"size": size},
	}}
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m"}})
	return u
}

// changes returns one change of each action.
func changes() []topologyplan.Change {
	return []topologyplan.Change{
		{Action: topologyplan.Created, After: thing("new", 1)},
		{Action: topologyplan.Modified, Before: thing("old", 1), After: thing("old", 2), Fields: []string{"spec.size"}},
		{Action: topologyplan.Deleted, Before: thing("gone", 1)},
	}
}

// written returns the files that write creates, by their paths below the directory.
func written(t *testing.T, diff string) (map[string]string, error) {
	t.Helper()
	streams, _ := iostreams.Test()
	dir := t.TempDir()
	o := &Options{IO: streams, Directory: dir, DiffCommand: diff}
	err := o.write(t.Context(), changes(), io.Discard)
	files := map[string]string{}
	fsErr := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir+"/")] = strings.ReplaceAll(string(raw), dir, "DIR")
		return err
	})
	if fsErr != nil {
		t.Fatal(fsErr)
	}
	return files, err
}

func TestFiles(t *testing.T) {
	got, err := written(t, "echo compare")
	if err != nil {
		t.Fatal(err)
	}
	object := func(name, size string) string {
		return "apiVersion: example.io/v1\nkind: Thing\nmetadata:\n  name: " + name + "\n  namespace: ns\nspec:\n  size: " + size + "\n"
	}
	want := map[string]string{
		"created/Thing_ns_new.yaml":           object("new", "1"),
		"modified/Thing_ns_old.original.yaml": object("old", "1"),
		"modified/Thing_ns_old.modified.yaml": object("old", "2"),
		"modified/Thing_ns_old.jsonpatch":     "[\n  {\n    \"op\": \"replace\",\n    \"path\": \"/spec/size\",\n    \"value\": 2\n  }\n]\n",
		"modified/Thing_ns_old.diff":          "compare DIR/modified/Thing_ns_old.original.yaml DIR/modified/Thing_ns_old.modified.yaml\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestDiffCommands is about the exit codes of commands that compare: 1 means that the files differ.
func TestDiffCommands(t *testing.T) {
	got, err := written(t, "diff -u -N")
	if diff := got["modified/Thing_ns_old.diff"]; err != nil || !strings.Contains(diff, "-  size: 1\n+  size: 2\n") {
		t.Errorf("diff is %q, %v", diff, err)
	}
	for _, tc := range []struct{ reason, command string }{
		{"the command is not installed", "no-such-command-for-diffs"},
		{"the command fails", "diff --no-such-option"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := written(t, tc.command)
			if err == nil || !strings.Contains(err.Error(), `cannot write Thing old: comparing with "`+tc.command+`"`) || !strings.Contains(err.Error(), "KUBECTL_EXTERNAL_DIFF") {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestUnwritableDirectory(t *testing.T) {
	streams, _ := iostreams.Test()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := &Options{IO: streams, Directory: file, DiffCommand: "diff"}
	if err := o.write(t.Context(), changes(), io.Discard); err == nil || !strings.Contains(err.Error(), "cannot create a directory for the plan") {
		t.Errorf("error is %v", err)
	}
}
