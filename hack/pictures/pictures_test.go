package pictures

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// small is a picture without mistakes.
const small = `title A and B
desc A leads to B.
size 40 20
area 0.5 0.5 39 19 plain "Area"
box a 2 5 10 5 core "A" "first"
box b 25 5 10 5 user "B"
arrow a.right b.left "to"
`

func TestDraw(t *testing.T) {
	p, err := parse("small", small)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.check(); err != nil {
		t.Fatal(err)
	}
	drawn := p.svg(".x { fill: red; }\n")
	for reason, want := range map[string]string{
		"readers of screens get the title": `<title id="small-title">A and B</title>`,
		"and the description":              `<desc id="small-desc">A leads to B.</desc>`,
		"the style sheet is in the file":   "<style>\n.x { fill: red; }\n</style>",
		"a box is in pixels":               `<rect class="box core" x="20" y="50" width="100" height="50" rx="6"/>`,
		"an arrow ends before its head":    `<path class="arrow" d="M120 75L241 75"/>`,
		"its label is in the middle":       `<text class="note middle" x="185" y="69">to</text>`,
	} {
		if !strings.Contains(drawn, want) {
			t.Errorf("%s: %s is not in\n%s", reason, want, drawn)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, tc := range []struct{ reason, old, with, want string }{
		{"a word that does not exist", "size", "sise", `small.txt:3: unknown word "sise"`},
		{"a box that does not exist", "b.left", "c.left", "small.txt:7: there is no box c"},
		{"a side that does not exist", "b.left", "b.inside", "small.txt:7: b.inside is not ID.SIDE"},
		{"a coordinate is missing", "25 5 10 5 user", "25 5 10 user", `small.txt:6: strconv.ParseFloat: parsing "user": invalid syntax`},
		{"no description", "desc", "#", "small.txt: a picture needs title, desc and size"},
		{"a text that does not fit", `"first"`, `"the first of both boxes"`,
			`small.txt: "the first of both boxes" needs 140 pixels, and box a has 90`},
		{"too many lines", `"first"`, `"1" "2" "3"`, "small.txt: the lines of box a need 73 pixels, and it has 50"},
		{"boxes that overlap", "b 25 5", "b 11 5", "small.txt: boxes b and a overlap"},
		{"a box on the edge of an area", "b 25 5", "b 25 15.2", "small.txt: box b is partly inside the area Area"},
		{"a label without room", "b 25 5", "b 13 5", `small.txt: "to" overlaps box a`},
		{"an arrow across a box", "arrow", "box c 15 5 5 5 core \"C\"\narrow", "small.txt: the arrow from a to b crosses box c"},
		{"texts that overlap", "arrow", "text 18 7 start note \"here\"\narrow", `small.txt: "to" overlaps "here"`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			p, err := parse("small", strings.Replace(small, tc.old, tc.with, 1))
			if err == nil {
				err = p.check()
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestEmbedded checks that files have the colors of both themes, and that browsers without light-dark() can read them.
func TestEmbedded(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, Style)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	source := "/* Why. */\n.a { fill: light-dark(#fff, #000); rx: 1; }\n.b { rx: 2; }\n@media print {\n  .a { rx: 3; }\n}\n"
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	style, err := Embedded(root)
	if err != nil {
		t.Fatal(err)
	}
	want := ".a { fill: #fff; rx: 1; }\n.b { rx: 2; }\n@media print {\n  .a { rx: 3; }\n}\n" +
		"@media (prefers-color-scheme: dark) {\n.a { fill: #000; }\n}\n"
	if style != want {
		t.Errorf("got\n%s\nwant\n%s", style, want)
	}
}

// TestWellFormed reads all pictures as XML, and checks that they are drawn from their sources, or recorded.
func TestWellFormed(t *testing.T) {
	folder := filepath.Join("..", "..", Folder)
	files, err := filepath.Glob(filepath.Join(folder, "*.svg"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d pictures: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".svg")
		if _, err := os.Stat(filepath.Join(folder, name+".txt")); err != nil && !strings.HasPrefix(name, "cast-") {
			t.Errorf("%s has no source: %v", file, err)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(strings.NewReader(string(content))); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s: %v", file, err)
				break
			}
		}
	}
}
