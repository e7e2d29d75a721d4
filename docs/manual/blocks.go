package manual

import (
	"fmt"
	"html"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// blocks renders what looks different from goldmark's own HTML: tables scroll horizontally, pictures are part of the page, and blocks of
// code have a mark, and colors for comments and keys.
type blocks struct{}

// key matches the key of a line of YAML.
var key = regexp.MustCompile(`^([ -]*)([\w./-]+)(:(?: .*)?)$`)

// RegisterFuncs implements renderer.NodeRenderer.
func (blocks) RegisterFuncs(register renderer.NodeRendererFuncRegisterer) {
	register.Register(ast.KindFencedCodeBlock, code)
	register.Register(extast.KindTable, table)
	register.Register(ast.KindImage, figure)
}

func table(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	part := "</table></div>\n"
	if entering {
		part = "<div class=\"table\"><table>\n"
	}
	_, err := w.WriteString(part)
	return ast.WalkContinue, err
}

func code(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	block, ok := n.(*ast.FencedCodeBlock)
	if !ok || !entering {
		return ast.WalkContinue, nil
	}
	mark := string(block.Language(source))
	_, err := fmt.Fprintf(w, "<pre data-mark=\"%s\" tabindex=\"0\"><code>%s</code></pre>\n",
		html.EscapeString(mark), colored(mark, string(block.Lines().Value(source))))
	return ast.WalkSkipChildren, err
}

// colored returns code as HTML, with elements around comments and the keys of YAML.
func colored(mark, code string) string {
	comment := map[string]string{"sh": "#", "example": "#", "yaml": "#", "go": "//"}[mark]
	var out strings.Builder
	for line := range strings.Lines(code) {
		line, end := strings.TrimSuffix(line, "\n"), "\n"
		rest := ""
		if at := commentIn(line, comment); at >= 0 {
			line, rest = line[:at], line[at:]
		}
		if match := key.FindStringSubmatch(line); match != nil && mark == "yaml" {
			fmt.Fprintf(&out, `%s<b>%s</b>%s`, match[1], html.EscapeString(match[2]), html.EscapeString(match[3]))
		} else {
			out.WriteString(html.EscapeString(line))
		}
		if rest != "" {
			fmt.Fprintf(&out, "<i>%s</i>", html.EscapeString(rest))
		}
		out.WriteString(end)
	}
	return out.String()
}

// commentIn returns where the comment of a line starts, -1 if there is none: at the start of a word outside quotes.
func commentIn(line, start string) int {
	if start == "" {
		return -1
	}
	quote := byte(0)
	for i := range len(line) {
		switch c := line[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case strings.HasPrefix(line[i:], start) && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t'):
			return i
		}
	}
	return -1
}
