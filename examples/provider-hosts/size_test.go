package hosts_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSize keeps the provider small enough to read: it is a tutorial. Comments, blank lines, imports, and generated and test code do not
// count.
func TestSize(t *testing.T) {
	const limit = 950 // about 130 of them go with contract v1beta1, and 40 are for the recovery of etcd, which is optional
	total := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name == "sshtest":
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"), strings.HasPrefix(name, "zz_generated."):
			return nil
		}
		content, err := os.ReadFile(path)
		total += lines(string(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d lines", total)
	if total == 0 || total > limit {
		t.Errorf("the provider has %d lines of code, want at most %d", total, limit)
	}
}

func lines(content string) int {
	n, importing := 0, false
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		switch {
		case line == "import (":
			importing = true
		case importing:
			importing = line != ")"
		case line != "" && !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "import "):
			n++
		}
	}
	return n
}
