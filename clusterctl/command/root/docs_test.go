package root

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocs writes the book of clusterctl, and completes the flags of the command.
func TestDocs(t *testing.T) {
	c := newCLI(t)
	dir := filepath.Join(t.TempDir(), "book")
	c.works("docs", "--output-dir", dir)
	page, err := os.ReadFile(filepath.Join(dir, "clusterctl.html"))
	if err != nil || !strings.Contains(string(page), `<h1 id="clusterctl">`) {
		t.Errorf("the page of clusterctl is not in the book: %v", err)
	}
	for flag, directive := range map[string]string{"--address": ":4\n", "--output-dir": ":16\n"} {
		if out := c.works("__completeNoDesc", "docs", flag, "").Out; out != directive {
			t.Errorf("%s: got %q, want %q", flag, out, directive)
		}
	}
	c.fails("An argument is no page.", []string{"docs", "upgrade"}, `unknown command "upgrade" for "clusterctl docs"`)
}
