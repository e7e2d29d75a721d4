package pictures

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Folder and Style are where pictures and their style sheet are in the repository.
const (
	Folder = "docs/book/pictures"
	Style  = "docs/manual/assets/pictures.css"
)

var (
	pair    = regexp.MustCompile(`light-dark\(([^,]+), ([^)]+)\)`)
	comment = regexp.MustCompile(`(?s)/\*.*?\*/\s*`)
	rule    = regexp.MustCompile(`(?m)^([^@{}\n]+) \{([^{}]*)\}$`)
	// embedded is the style sheet in a file, between open and closed.
	embedded = regexp.MustCompile(`(?s)<style>\n.*?</style>`)
)

const open, closed = "<style>\n", "</style>"

// Write draws all pictures of a repository, and returns the files that changed.
func Write(root string) ([]string, error) {
	style, err := Embedded(root)
	if err != nil {
		return nil, err
	}
	sources, err := filepath.Glob(filepath.Join(root, Folder, "*.txt"))
	if err != nil {
		return nil, err
	}
	changed, err := restyle(root, style)
	if err != nil {
		return changed, err
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			return changed, err
		}
		p, err := parse(strings.TrimSuffix(filepath.Base(source), ".txt"), string(text))
		if err != nil {
			return changed, err
		}
		if err := p.check(); err != nil {
			return changed, err
		}
		file, drawn := strings.TrimSuffix(source, ".txt")+".svg", []byte(p.svg(style))
		if before, err := os.ReadFile(file); err == nil && bytes.Equal(before, drawn) {
			continue
		}
		if err := os.WriteFile(file, drawn, 0o644); err != nil {
			return changed, err
		}
		changed = append(changed, file)
	}
	return changed, nil
}

// restyle gives casts, which cannot be drawn without a cluster, the present style sheet, and returns those that changed.
func restyle(root, style string) ([]string, error) {
	casts, err := filepath.Glob(filepath.Join(root, Folder, "cast-*.svg"))
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, file := range casts {
		before, err := os.ReadFile(file)
		if err != nil {
			return changed, err
		}
		after := embedded.ReplaceAllLiteral(before, []byte(open+style+closed))
		if bytes.Equal(before, after) {
			continue
		}
		if err := os.WriteFile(file, after, 0o644); err != nil {
			return changed, err
		}
		changed = append(changed, file)
	}
	return changed, nil
}

// Embedded returns the style sheet as files contain it: the colors of the light theme, and those of the dark one for browsers that prefer
// it. It works in browsers without light-dark(), too.
func Embedded(root string) (string, error) {
	source, err := os.ReadFile(filepath.Join(root, Style))
	if err != nil {
		return "", err
	}
	style := strings.TrimSpace(comment.ReplaceAllString(string(source), ""))
	var dark strings.Builder
	for _, match := range rule.FindAllStringSubmatch(style, -1) {
		var colors []string
		for declaration := range strings.SplitSeq(match[2], ";") {
			if pair.MatchString(declaration) {
				colors = append(colors, strings.TrimSpace(pair.ReplaceAllString(declaration, "$2")))
			}
		}
		if colors != nil {
			fmt.Fprintf(&dark, "%s { %s; }\n", match[1], strings.Join(colors, "; "))
		}
	}
	return pair.ReplaceAllString(style, "$1") + "\n@media (prefers-color-scheme: dark) {\n" + dark.String() + "}\n", nil
}

// Open returns the start of a file: what it shows, for readers of screens, and its style.
func Open(name, title, desc, style string, width, height float64) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" class="picture" role="img" aria-labelledby="%[1]s-title %[1]s-desc" `+
		`viewBox="0 0 %[2]g %[3]g" width="%[2]g" height="%[3]g">
<title id="%[1]s-title">%[4]s</title>
<desc id="%[1]s-desc">%[5]s</desc>
%[6]s
`, name, width, height, html.EscapeString(title), html.EscapeString(desc), open+style+closed)
}

// svg draws a picture.
func (p *picture) svg(style string) string {
	var out strings.Builder
	out.WriteString(Open(p.name, p.title, p.desc, style, p.width, p.height))
	fmt.Fprintf(&out, "<rect class=\"back\" width=\"%g\" height=\"%g\" rx=\"8\"/>\n", p.width, p.height)
	for _, area := range p.areas {
		fmt.Fprintf(&out, "<rect class=\"area %s\" x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" rx=\"8\"/>\n",
			area.kind, area.x, area.y, area.w, area.h)
		area.heading().draw(&out)
	}
	for _, l := range p.lines {
		fmt.Fprintf(&out, "<path class=\"rule\" d=\"M%g %gL%g %g\"/>\n", l[0].x, l[0].y, l[1].x, l[1].y)
	}
	for _, a := range p.arrows {
		class := "arrow"
		if a.dashed {
			class = "arrow dashed"
		}
		line, head := path(p.route(a))
		fmt.Fprintf(&out, "<path class=\"%s\" d=\"%s\"/><path class=\"head\" d=\"%s\"/>\n", class, line, head)
	}
	for _, b := range p.boxes {
		b.draw(&out)
	}
	for _, a := range p.arrows {
		if a.text != "" {
			a.label(p.route(a)).draw(&out)
		}
	}
	for _, t := range p.texts {
		t.draw(&out)
	}
	out.WriteString("</svg>\n")
	return out.String()
}

func (b box) draw(out *strings.Builder) {
	radius := 6.0
	if b.kind == "ask" {
		radius = b.h / 2
	}
	fmt.Fprintf(out, "<rect class=\"box %s\" x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" rx=\"%g\"/>\n", b.kind, b.x, b.y, b.w, b.h, radius)
	top := b.y + (b.h-float64(len(b.lines)*lineHeight))/2 + 13
	for i, line := range b.lines {
		label{point{b.x + b.w/2, top + float64(i*lineHeight)}, "middle", lineClass(i), line}.draw(out)
	}
}

func (l label) draw(out *strings.Builder) {
	fmt.Fprintf(out, "<text class=\"%s %s\" x=\"%g\" y=\"%g\">%s</text>\n", l.class, l.align, l.x, l.y, html.EscapeString(l.text))
}
