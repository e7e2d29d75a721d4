package managers

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReadObjects(t *testing.T) {
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte("---\nkind: A\nspec: {n: 1}\n---\nkind: B\n---\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := ReadObjects(file)
	if err != nil || len(objects) != 2 || objects[0].GetKind() != "A" || objects[1].GetKind() != "B" {
		t.Errorf("%v, %v", objects, err)
	}
}
