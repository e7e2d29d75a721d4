package cloud

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestLeftovers(t *testing.T) {
	directory := t.TempDir()
	at := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "n", Name: name} }
	before := New(Options{Directory: directory})
	for _, name := range []string{"gone", "living", "replaced"} {
		if _, err := before.EnsureGroup(at(name), types.UID("uid-"+name)); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := before.Leftovers(); err != nil || len(left) != 0 {
		t.Errorf("leftovers with open groups: %v, %v", left, err)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"n_torn.journal": "{", "n_newer.journal": `{"version":2,"uid":"u"}` + "\n", "notes": "mine"} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := New(Options{Directory: directory})
	if _, err := c.EnsureGroup(at("living"), "uid-living"); err != nil {
		t.Fatal(err)
	}
	left, err := c.Leftovers()
	if err != nil {
		t.Fatal(err)
	}
	var owners []types.UID
	for _, l := range left {
		owners = append(owners, l.UID)
	}
	if diff := cmp.Diff([]types.UID{"uid-gone", "uid-replaced"}, owners); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	// A cluster with one of these names is opened between listing and discarding.
	if _, err := c.EnsureGroup(at("replaced"), "another"); err != nil {
		t.Fatal(err)
	}
	for _, l := range left {
		if err := c.Discard(l); err != nil {
			t.Error(err)
		}
	}
	var files []string
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		files = append(files, entry.Name())
	}
	want := []string{"n_living.journal", "n_newer.journal", "n_replaced.journal", "n_torn.journal", "notes"}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if left, err := New(Options{}).Leftovers(); err != nil || left != nil {
		t.Errorf("leftovers without a directory: %v, %v", left, err)
	}
}
