package template

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/drone/envsubst/v2/parse"

	"sigs.k8s.io/cluster-api/packages"
)

// piece is a part of a template: lines without expressions, or those of one or more expressions. The library recurses for
// each expression, and copies the whole text for each escaped character: given pieces, it has bounded work.
type piece struct {
	text string
	// root is nil for plain text.
	root parse.Node
}

const (
	// maxJoined is how many bytes can be parsed again because an expression goes on in the next line.
	maxJoined = 64 << 20
	// maxCopied is how many bytes may be copied for the escaped characters of a piece.
	maxCopied = 1 << 30
	// shownLine is how many bytes of a malformed line are shown.
	shownLine = 120
)

// spacedBraces matches ${ NAME }, which the library does not support.
var spacedBraces = regexp.MustCompile(`\$\{\s*([A-Za-z0-9_$]+)\s*\}`)

// splitter cuts a template into pieces.
type splitter struct {
	text   string
	joined int
}

// split returns the pieces of a text. Errors name the line.
func split(text string) ([]piece, error) {
	s := &splitter{text: text}
	var pieces []piece
	for start := 0; start < len(text); {
		dollar := strings.IndexByte(text[start:], '$')
		if dollar < 0 {
			return append(pieces, piece{text: text[start:]}), nil
		}
		line := start + strings.LastIndexByte(text[start:start+dollar], '\n') + 1
		if line > start {
			pieces = append(pieces, piece{text: text[start:line]})
		}
		p, end, err := s.expressions(line)
		if err != nil {
			return nil, s.locate(line, err)
		}
		pieces, start = append(pieces, p), end
	}
	return pieces, nil
}

// expressions returns the piece that starts with a line: the line, and the next ones if an expression ends there.
func (s *splitter) expressions(start int) (piece, int, error) {
	var first error
	for end := s.lineEnd(start); ; {
		p, err := parsePiece(s.text[start:end])
		if err == nil {
			return p, end, nil
		}
		if first == nil {
			first = err
		}
		if _, beyond := errors.AsType[*limitError](err); beyond {
			return piece{}, 0, err
		}
		brace := strings.IndexByte(s.text[end:], '}')
		if brace < 0 || s.joined > maxJoined {
			return piece{}, 0, first
		}
		end = s.lineEnd(end + brace)
		s.joined += end - start
	}
}

func (s *splitter) lineEnd(from int) int {
	if i := strings.IndexByte(s.text[from:], '\n'); i >= 0 {
		return from + i + 1
	}
	return len(s.text)
}

func (s *splitter) locate(start int, err error) error {
	number, line := 1+strings.Count(s.text[:start], "\n"), strings.TrimSpace(s.text[start:s.lineEnd(start)])
	if len(line) > shownLine {
		line = strings.ToValidUTF8(line[:shownLine], "") + "..."
	}
	return fmt.Errorf("line %d: %q: %w: check the ${...} expression, or use $${...} to keep it unchanged", number, line, err)
}

// limitError is the error of an expression that is beyond a limit.
type limitError struct {
	text string
}

// Error implements error.
func (e *limitError) Error() string { return e.text }

func parsePiece(text string) (piece, error) {
	if strings.Count(text, "${") > packages.MaxExpressions {
		return piece{}, &limitError{fmt.Sprintf("more than %d expressions, nested or in one line", packages.MaxExpressions)}
	}
	escaped := strings.Count(text, "$$") + strings.Count(text, `\\`) + strings.Count(text, `\/`)
	if escaped*len(text) > maxCopied {
		return piece{}, &limitError{fmt.Sprintf("%d escaped characters in one line or expression of %d bytes", escaped, len(text))}
	}
	text = spacedBraces.ReplaceAllString(text, "$${$1}")
	tree, err := parse.Parse(text)
	if err != nil {
		return piece{}, err
	}
	if nesting(tree.Root) > packages.MaxNesting {
		return piece{}, &limitError{fmt.Sprintf("an expression is nested in more than %d others", packages.MaxNesting)}
	}
	return piece{text: text, root: tree.Root}, nil
}

// nesting returns how deep expressions are nested.
func nesting(node parse.Node) int {
	deepest := 0
	switch n := node.(type) {
	case *parse.ListNode:
		for _, child := range n.Nodes {
			deepest = max(deepest, nesting(child))
		}
	case *parse.FuncNode:
		for _, arg := range n.Args {
			deepest = max(deepest, nesting(arg))
		}
		deepest++
	}
	return deepest
}
