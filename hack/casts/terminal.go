package casts

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// row is a row of the terminal: its letters, and the class of each.
type row struct {
	letters []rune
	classes []string
}

// screen returns what a terminal shows.
func screen(t *vt.Emulator) []row {
	rows := make([]row, t.Height())
	for y := range rows {
		r := row{make([]rune, t.Width()), make([]string, t.Width())}
		for x := range r.letters {
			r.letters[x] = ' '
			if cell := t.CellAt(x, y); cell != nil && cell.Content != "" {
				r.letters[x], r.classes[x] = []rune(cell.Content)[0], class(cell.Style)
			}
		}
		rows[y] = r
	}
	return rows
}

// class returns the class of a style. White is the color of texts, since the back is not black in both themes.
func class(s uv.Style) string {
	color := ""
	if basic, ok := s.Fg.(ansi.BasicColor); ok {
		color = map[ansi.BasicColor]string{
			ansi.Red: "cast-red", ansi.Green: "cast-green", ansi.Yellow: "cast-yellow", ansi.Blue: "cast-blue", ansi.Magenta: "cast-magenta",
			ansi.Cyan: "cast-cyan", ansi.BrightBlack: "cast-gray",
		}[basic]
	}
	if s.Attrs&uv.AttrBold != 0 {
		color = strings.TrimSpace(color + " cast-bold")
	}
	return color
}

func same(a, b []row) bool {
	return slices.EqualFunc(a, b, func(a, b row) bool { return slices.Equal(a.letters, b.letters) && slices.Equal(a.classes, b.classes) })
}

// generated matches names with generated parts.
var (
	generated = regexp.MustCompile(`\bdemo(?:-md-0)?(?:-[a-z0-9]{5})+\b`)
	suffix    = regexp.MustCompile(`-[a-z0-9]{5}\b`)
)

// names replaces generated parts of names by others, which are the same in each recording: they follow from the part before, such as the
// name of a MachineSet, and from how many there are of it.
type names struct {
	// known has what replaces a name, or the start of one.
	known map[string]string
	count map[string]int
}

func newNames() *names { return &names{known: map[string]string{}, count: map[string]int{}} }

// letters are those of generated names.
const letters = "bcdfghjklmnpqrstvwxz2456789"

// stable replaces the generated parts in rows, also where a name continues in the next one.
func (n *names) stable(rows []row) []row {
	var text []rune
	for _, r := range rows {
		text = append(text, r.letters...)
	}
	text = []rune(generated.ReplaceAllStringFunc(string(text), n.of))
	for i := range rows {
		text = text[copy(rows[i].letters, text):]
	}
	return rows
}

// of returns what replaces a name, of the same length.
func (n *names) of(name string) string {
	parts := suffix.FindAllStringIndex(name, -1)
	now := name[:parts[0][0]]
	for _, part := range parts {
		before := name[:part[1]]
		if n.known[before] == "" {
			n.count[now]++
			hash := fnv.New32a()
			fmt.Fprint(hash, now, n.count[now])
			sum := int(hash.Sum32())
			replaced := []byte(now + "-")
			for range part[1] - part[0] - 1 {
				replaced = append(replaced, letters[sum%len(letters)])
				sum /= len(letters)
			}
			n.known[before] = string(replaced)
		}
		now = n.known[before]
	}
	return now
}
