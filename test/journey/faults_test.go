package journey

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestFaultsAreDocumented checks that the book's table of faults has the causes that the journeys check, with their tests.
func TestFaultsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "book", "troubleshooting.md"))
	testenv.Must(t, err)
	_, causes, _ := strings.Cut(string(page), "\n### Causes\n")
	causes, faults, found := strings.Cut(causes, "\n### Faults\n")
	if !found {
		t.Fatal("the page has no sections Causes and Faults")
	}
	faults, _, _ = strings.Cut(faults, "\n## ")
	var known []string
	for _, cells := range rows(causes) {
		known = append(known, quoted(cells[0])...)
	}
	documented := map[string][]string{}
	for _, cells := range rows(faults) {
		for _, test := range quoted(cells[2]) {
			documented[test] = sorted(append(documented[test], quoted(cells[1])...))
		}
	}
	if diff := cmp.Diff(explainedFaults(t, known), documented); diff != "" {
		t.Errorf("causes by test (-journeys +book):\n%s", diff)
	}
}

// rows returns the cells of the tables of a page, without headings.
func rows(text string) [][]string {
	var list [][]string
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "|--") && strings.Contains(line, "`") {
			list = append(list, cells)
		}
	}
	return list
}

// quoted returns the words in backticks.
func quoted(text string) []string {
	var list []string
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			list = append(list, part)
		}
	}
	return list
}

func sorted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// explainedFaults returns the causes that each test of this package expects, in literals such as "Paused Cluster/c" of its functions.
func explainedFaults(t *testing.T, known []string) map[string][]string {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	testenv.Must(t, err)
	causes, uses := map[string][]string{}, map[string][]string{}
	pattern := regexp.MustCompile("^(" + strings.Join(known, "|") + ") [A-Z][A-Za-z]+(/.*)?$")
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		testenv.Must(t, err)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Ident:
					uses[f.Name.Name] = append(uses[f.Name.Name], n.Name)
				case *ast.BasicLit:
					if text, err := strconv.Unquote(n.Value); err == nil && pattern.MatchString(text) {
						reason, _, _ := strings.Cut(text, " ")
						causes[f.Name.Name] = append(causes[f.Name.Name], reason)
					}
				}
				return true
			})
		}
	}
	found := map[string][]string{}
	for name := range maps.Keys(uses) {
		if !strings.HasPrefix(name, "Test") {
			continue
		}
		if all := reached(name, causes, uses, map[string]bool{}); len(all) > 0 {
			found[name] = sorted(all)
		}
	}
	return found
}

// reached returns the causes of a function and of those that it uses.
func reached(name string, causes, uses map[string][]string, seen map[string]bool) []string {
	if seen[name] {
		return nil
	}
	seen[name] = true
	list := slices.Clone(causes[name])
	for _, next := range uses[name] {
		list = append(list, reached(next, causes, uses, seen)...)
	}
	return list
}
