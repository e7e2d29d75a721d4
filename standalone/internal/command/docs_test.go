package command_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/cluster-api/standalone/internal/command"
)

// TestDocs writes the book of capi.
func TestDocs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "book")
	cmd := command.New(nil, nil)
	cmd.SetArgs([]string{"docs", "--output-dir", dir})
	cmd.SetOut(io.Discard)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "standalone.html"))
	if err != nil || !strings.Contains(string(page), "capi serve") {
		t.Errorf("the page of capi is not in the book: %v", err)
	}
}
