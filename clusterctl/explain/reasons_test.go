package explain

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReasonsAreDocumented checks that the book has every reason, in the order of the rules, and that a transcript shows each.
func TestReasonsAreDocumented(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "reasons.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			reasons = append(reasons, v.Names[0].Name)
		}
		return true
	})
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "book", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, causes, _ := strings.Cut(string(page), "\n### Causes\n")
	causes, _, _ = strings.Cut(causes, "\n### ")
	var documented []string
	for line := range strings.Lines(causes) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, match := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(first, -1) {
			documented = append(documented, match[1])
		}
	}
	if diff := cmp.Diff(reasons, documented); diff != "" {
		t.Errorf("reasons (-reasons.go +book):\n%s", diff)
	}
	transcripts := ""
	for _, name := range []string{"cluster.txt", "machine.txt", "rollout.txt"} {
		content, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		transcripts += string(content)
	}
	for _, reason := range reasons {
		if !strings.Contains(transcripts, "\nBlocked "+reason+" ") && !strings.Contains(transcripts, "\nProgressing "+reason+" ") &&
			!strings.Contains(transcripts, "\nUpcoming "+reason+" ") {
			t.Errorf("no transcript has a cause with reason %s", reason)
		}
	}
}
