package book

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fuzzTest matches the first line of a fuzz test.
var fuzzTest = regexp.MustCompile(`(?m)^func Fuzz\w*\(f \*testing\.F\) \{$`)

// TestFuzzTestsAreCounted checks the number of fuzz tests in the book.
func TestFuzzTestsAreCounted(t *testing.T) {
	root := filepath.Join("..", "..")
	count := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		count += len(fuzzTest.FindAll(text, -1))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "book", "fuzzing.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("There are %d fuzz tests", count); !strings.Contains(string(page), want) {
		t.Errorf("docs/book/fuzzing.md does not contain %q", want)
	}
}
