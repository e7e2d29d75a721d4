package manual

import (
	"bytes"
	"fmt"
	"html/template"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// document is a page without what surrounds it.
type document struct {
	body template.HTML
	// sections are its headings with what follows them. The first one is the page's title.
	sections []section
}

// section is a heading, and the text until the next one.
type section struct {
	level             int
	id, heading, text string
}

// parser returns the parser and renderer of pages: the Markdown of GitHub, without HTML, and without style attributes, which the content
// security policy forbids.
func parser() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
			extension.Strikethrough,
			extension.Linkify,
		),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(blocks{}, 100))),
	)
}

// render renders a page. resolve returns the destination of a link on the site, and whether it leaves the site; picture returns the
// content of a picture.
func render(
	source []byte, resolve func(string) (to string, leaves bool, err error), picture func(string) ([]byte, error),
) (*document, error) {
	md := parser()
	root := md.Parser().Parse(text.NewReader(source))
	d := &document{}
	if err := links(root, source, resolve); err != nil {
		return nil, err
	}
	if err := pictures(root, source, picture); err != nil {
		return nil, err
	}
	d.headings(root, source)
	d.texts(root, source)
	if len(d.sections) == 0 || d.sections[0].level != 1 {
		return nil, fmt.Errorf("the page does not start with a heading of the first level, which is its title")
	}
	var out bytes.Buffer
	if err := md.Renderer().Render(&out, source, root); err != nil {
		return nil, err
	}
	d.body = template.HTML(out.String()) //nolint:gosec // The renderer escapes, and pages are compiled in.
	return d, nil
}

// links replaces the destinations of links, and rejects what the site cannot show.
func links(root ast.Node, source []byte, resolve func(string) (string, bool, error)) error {
	return ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			to, leaves, err := resolve(string(n.Destination))
			if err != nil {
				return ast.WalkStop, err
			}
			n.Destination = []byte(to)
			if leaves {
				n.SetAttributeString("rel", []byte("noreferrer"))
			}
		case *ast.AutoLink:
			n.SetAttributeString("rel", []byte("noreferrer"))
		case *ast.RawHTML:
			return ast.WalkContinue, markup(n.Segments.Value(source))
		case *ast.HTMLBlock:
			return ast.WalkContinue, markup(n.Lines().Value(source))
		}
		return ast.WalkContinue, nil
	})
}

// markup rejects HTML other than comments, which would be missing on the site.
func markup(found []byte) error {
	if bytes.HasPrefix(found, []byte("<!--")) {
		return nil
	}
	return fmt.Errorf("the page has HTML, %s: put it between backticks", bytes.TrimSpace(found))
}

// headings gives headings the anchors that GitHub gives them, each with a link to itself, and starts a section for each.
func (d *document) headings(root ast.Node, source []byte) {
	used := map[string]int{}
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		heading, ok := n.(*ast.Heading)
		if !ok {
			continue
		}
		title := plain(heading, source)
		id := Anchor(title)
		if used[id]++; used[id] > 1 {
			id = fmt.Sprintf("%s-%d", id, used[id]-1)
		}
		d.sections = append(d.sections, section{level: heading.Level, id: id, heading: title})
		heading.SetAttributeString("id", []byte(id))
		link := ast.NewLink()
		link.Destination = []byte("#" + id)
		link.SetAttributeString("class", []byte("anchor"))
		link.SetAttributeString("title", []byte("Link to this section"))
		link.AppendChild(link, ast.NewString([]byte("#")))
		heading.AppendChild(heading, link)
	}
}

// texts adds the texts below headings to their sections.
func (d *document) texts(root ast.Node, source []byte) {
	at := -1
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		switch {
		case n.Kind() == ast.KindHeading:
			at++
		case at >= 0:
			d.sections[at].text = strings.TrimSpace(d.sections[at].text + " " + plain(n, source))
		}
	}
}

// plain returns the text of a node without markup, in one line.
func plain(n ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // The function never fails.
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				out.Write(n.Value(source))
			}
			if n.SoftLineBreak() || n.HardLineBreak() {
				out.WriteByte(' ')
			}
		case *ast.AutoLink:
			if entering {
				out.Write(n.Label(source))
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if entering {
				out.Write(n.Lines().Value(source))
			}
		case *extast.TableCell:
			out.WriteByte(' ')
		default:
			if n.Type() == ast.TypeBlock {
				out.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(out.String()), " ")
}

// Anchor returns the anchor that GitHub gives a heading, the first of a page with this text.
func Anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, heading)
}
