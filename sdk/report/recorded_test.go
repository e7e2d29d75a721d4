package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recordedLists returns the metav1 conditions of all objects that v1.14.0 wrote in eight states of a cluster, by file and name.
func recordedLists(t *testing.T) map[string][]metav1.Condition {
	t.Helper()
	root := os.Getenv("CAPI_FACTS_DIR")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "facts")
	}
	paths, err := filepath.Glob(filepath.Join(root, "data", "recorded", "v1.14.0", "*.v1beta2.json"))
	if err != nil || len(paths) == 0 {
		t.Skipf("the reference data is absent, so nothing was compared: set CAPI_FACTS_DIR to the directory with data/recorded (%v)", err)
	}
	lists := map[string][]metav1.Condition{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var objects []struct {
			Kind     string
			Metadata metav1.ObjectMeta
			Status   struct{ Conditions []metav1.Condition }
		}
		if err := json.Unmarshal(content, &objects); err != nil {
			t.Fatalf("parse %s: %v", path, err)
		}
		for _, o := range objects {
			lists[filepath.Base(path)+" "+o.Kind+" "+o.Metadata.Name] = o.Status.Conditions
		}
	}
	return lists
}

// TestStoredOrder: conditions are in the order in which v1.14 stores them.
func TestStoredOrder(t *testing.T) {
	for name, stored := range recordedLists(t) {
		sorted := slices.Clone(stored)
		Sort(sorted)
		if diff := cmp.Diff(stored, sorted); diff != "" {
			t.Errorf("%s: -recorded +sorted:\n%s", name, diff)
		}
	}
}
