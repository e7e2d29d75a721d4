package house

import (
	"bytes"
	"cmp"
	_ "embed" // words.txt
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Ratchet is the file with the violations that are known: folder, number and rule in each line. More fail, and fewer do, too, until
// the number in the file is lowered. Without it, these rules are not checked.
const Ratchet = "hack/house/ratchet.txt"

const (
	// smallFile is the length below which a package of one file is small.
	smallFile    = 60
	smallPackage = "package of one file with less than 60 lines"
	importUp     = "import of a higher layer (docs/layout.md)"
)

// words are phrases of the right column of CONTRIBUTING.md's table, and literal translations, that have no other use; one per line.
//
//go:embed words.txt
var words string

var phrase = regexp.MustCompile(`(?i)\b(` + strings.Join(strings.Split(strings.TrimSpace(words), "\n"), "|") + `)\b`)

// violation is a folder and the rule that is violated in it.
type violation struct {
	folder, rule string
}

// violated records a violation of a ratchet.
func (c *checker) violated(name string, line int, rule string) {
	v := violation{folderOf(name), rule}
	c.ratchets[v] = append(c.ratchets[v], fmt.Sprintf("%s:%d", name, line))
}

// wording records phrases in comments, literals and names.
func (c *checker) wording(name string, f *ast.File) {
	record := func(at token.Pos, text string) {
		for _, found := range phrase.FindAllString(text, -1) {
			c.violated(name, c.files.Position(at).Line, strings.ToLower(found))
		}
	}
	for _, group := range f.Comments {
		record(group.Pos(), strings.Join(strings.Fields(group.Text()), " "))
	}
	named := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				record(n.Pos(), text)
			}
		case *ast.Ident:
			if !named[n.Name] {
				named[n.Name] = true
				record(n.Pos(), spaced(n.Name))
			}
		}
		return true
	})
}

// spaced returns the words of a name in camel case.
func spaced(name string) string {
	var out strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			out.WriteByte(' ')
		}
		out.WriteRune(r)
	}
	return out.String()
}

// smallPackages records packages of one short file, except commands.
func (c *checker) smallPackages() {
	for folder, sizes := range c.sizes {
		if len(sizes) == 1 && sizes[0] < smallFile {
			c.ratchets[violation{".", smallPackage}] = append(c.ratchets[violation{".", smallPackage}], folder)
		}
	}
}

// compareRatchets reports the differences to the file.
func (c *checker) compareRatchets(tree fs.FS) error {
	known, err := readRatchets(tree)
	if err != nil || known == nil {
		return err
	}
	for v, places := range c.ratchets {
		if allowed := known[v]; len(places) > allowed {
			c.findings = append(c.findings, Finding{File: Ratchet, Line: 1, Message: fmt.Sprintf(
				"%s: %q occurs %d times, and %d are known: correct the new one (CONTRIBUTING.md); they are at %s",
				v.folder, v.rule, len(places), allowed, strings.Join(places, " "))})
		}
	}
	for v, allowed := range known {
		if n := len(c.ratchets[v]); n < allowed {
			c.findings = append(c.findings, Finding{File: Ratchet, Line: 1, Message: fmt.Sprintf(
				"%s: %q occurs only %d times, and %d are known: lower that with go run ./cmd/house --update .. (in hack)",
				v.folder, v.rule, n, allowed)})
		}
	}
	return nil
}

// readRatchets reads the file; nil if there is none.
func readRatchets(tree fs.FS) (map[violation]int, error) {
	raw, err := fs.ReadFile(tree, Ratchet)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	known := map[violation]int{}
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(parts) != 3 {
			return nil, fmt.Errorf("%s: invalid line %q", Ratchet, line)
		}
		n, err := strconv.Atoi(parts[1])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", Ratchet, err)
		}
		known[violation{parts[0], parts[2]}] = n
	}
	return known, err
}

// Known returns the content of the file Ratchet with the present violations.
func Known(tree fs.FS) ([]byte, error) {
	c, err := check(tree)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("# Violations that are known: folder, number, rule. Lower the numbers, and do not raise them: " +
		"go run ./cmd/house --update ..\n")
	for _, v := range slices.SortedFunc(maps.Keys(c.ratchets), func(a, b violation) int {
		return cmp.Or(cmp.Compare(a.folder, b.folder), cmp.Compare(a.rule, b.rule))
	}) {
		fmt.Fprintf(&out, "%s %d %s\n", v.folder, len(c.ratchets[v]), v.rule)
	}
	return out.Bytes(), nil
}
