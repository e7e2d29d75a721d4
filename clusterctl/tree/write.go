package tree

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fatih/color"
	"github.com/mitchellh/go-wordwrap"
	"k8s.io/apimachinery/pkg/util/duration"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
)

const (
	// maxMessage is how many characters of a message are shown.
	maxMessage = 100
	// columnGap separates columns.
	columnGap = "  "
	// conditionIndent distinguishes conditions from the objects below them.
	conditionIndent = "          "
)

// Style is how a tree is printed.
type Style struct {
	// Color prints terminal colors.
	Color bool
	// Now is the current time, for ages.
	Now time.Time
	// Reports prints the conditions and counters of v1beta2, which the tree must have been built with. Not with Wide.
	Reports bool
	// Wide adds columns, and shows whole messages.
	Wide bool
	// Width is that of the terminal, 0 if it does not matter. In a table that is wider, messages are below their rows, not shortened.
	Width int
	// Short leaves the namespace of the Cluster, and then its version, out of the names of its objects if a table with reports is wider
	// than Width even then.
	Short bool
}

// Write writes a tree as a table.
func Write(w io.Writer, root *Node, s Style) error {
	_, err := io.WriteString(w, strings.Join(Lines(root, s), "\n")+"\n")
	return err
}

// Lines returns the lines of the table, starting with the heading.
func Lines(root *Node, s Style) []string {
	if s.Reports && !s.Wide {
		return reportLines(root, s)
	}
	t := &table{Style: s, palette: newPalette(s.Color)}
	heading := []cell{{text: "NAME"}}
	if s.Wide {
		heading = append(heading, cell{text: "REPLICAS"}, cell{text: "VERSION"}, cell{text: "NODE"}, cell{text: "AGE"})
	}
	t.add(append(heading, cell{text: "READY"}, cell{text: "SEVERITY"}, cell{text: "REASON"}, cell{text: "SINCE"}, cell{text: "MESSAGE"})...)
	t.node(root, "", "")
	return t.lines()
}

// cell is a text, and its colored form if that differs.
type cell struct {
	text, colored string
	// free: the text may be longer than its column.
	free bool
}

type table struct {
	Style
	palette palette
	rows    [][]cell
	// apart: messages are below their rows. omitted and omittedVersion are the namespace and the version to leave out.
	apart                   bool
	omitted, omittedVersion string
}

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

// node adds the rows of a node: prefix precedes its own name, below the names of its descendants.
func (t *table) node(n *Node, prefix, below string) {
	t.add(slices.Concat([]cell{t.name(n, prefix)}, t.details(n), t.condition(n.Ready, len(n.Group) > 0))...)
	pipe := "  "
	if len(n.Children) > 0 {
		pipe = "│ "
	}
	for i := range n.Conditions {
		c := &n.Conditions[i]
		glyph := below + pipe + conditionIndent + branch(i, len(n.Conditions))
		name := cell{text: glyph + iostreams.Clean(c.Type), colored: glyph + t.palette.cyan(c.Type)}
		t.add(slices.Concat([]cell{name}, t.details(nil), t.condition(c, false))...)
	}
	for i, child := range n.Children {
		next := "│ "
		if i == len(n.Children)-1 {
			next = "  "
		}
		t.node(child, below+branch(i, len(n.Children)), below+next)
	}
}

// details returns the cells of the additional columns, empty ones for nil.
func (t *table) details(n *Node) []cell {
	if !t.Wide {
		return nil
	}
	cells := make([]cell, 4)
	if n == nil {
		return cells
	}
	if r := n.Replicas; r != nil {
		cells[0].text = fmt.Sprintf("%d/%d", r.Ready, r.Desired)
	}
	cells[1].text, cells[2].text = iostreams.Clean(n.Version), iostreams.Clean(n.NodeName)
	if !n.Created.IsZero() {
		cells[3].text = duration.HumanDuration(t.Now.Sub(n.Created))
	}
	return cells
}

func branch(i, n int) string {
	if i == n-1 {
		return "└─"
	}
	return "├─"
}

func (t *table) name(n *Node, prefix string) cell {
	deleting := ""
	if n.Deleting {
		deleting = " (deleting)"
	}
	c := cell{text: prefix + iostreams.Clean(n.RowName()) + deleting}
	name := n.objectName()
	switch {
	case len(n.Group) > 0:
		name = t.palette.bold(name)
	case n.MetaName != "" && n.Kind != "":
		name = n.MetaName + " - " + t.palette.gray(name)
	default:
		name = iostreams.Clean(name)
	}
	c.colored = prefix + name + t.palette.red(deleting)
	return c
}

// condition returns the cells after the name; c may be nil.
func (t *table) condition(c *Condition, group bool) []cell {
	if c == nil {
		return nil
	}
	paint := t.palette.of(c)
	since := ""
	if !c.Since.IsZero() {
		since = duration.HumanDuration(t.Now.Sub(c.Since))
	}
	message := strings.Join(strings.Fields(c.Message), " ")
	if !t.Wide && t.Width == 0 {
		message = oneLine(message)
	}
	paintMessage := paint
	if group {
		paintMessage = t.palette.gray
	}
	return []cell{
		painted(c.Status, paint), painted(c.Severity, paint), painted(c.Reason, paint), {text: since}, painted(message, paintMessage),
	}
}

func painted(text string, paint func(string) string) cell {
	return cell{text: iostreams.Clean(text), colored: paint(text)}
}

// oneLine shortens a message, which has no line breaks, for a table. If it ends with the names of the extensions that it is about, in
// parentheses, these are kept, and what is before them is shortened further.
func oneLine(message string) string {
	r := []rune(message)
	if len(r) <= maxMessage {
		return message
	}
	var names []rune
	if i := strings.LastIndex(message, " (extension "); i >= 0 && strings.HasSuffix(message, ")") {
		names = []rune(message[i:])
	}
	if len(names) > maxMessage/2 {
		names = nil
	}
	return string(r[:maxMessage-len(names)]) + " ..." + string(names)
}

// widths returns the widths of the columns, and of the table.
func (t *table) widths() (widths []int, total int) {
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if !c.free {
				widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
			}
		}
	}
	total = -len(columnGap)
	for _, width := range widths {
		total += width + len(columnGap)
	}
	return widths, total
}

func (t *table) lines() []string {
	widths, total := t.widths()
	below := t.Width > 0 && total > t.Width && !t.Reports
	var lines []string
	for i, row := range t.rows {
		last := len(row) - 1
		if !below || last < messageColumn(t.Wide) {
			lines = append(lines, line(row, widths))
			continue
		}
		lines = append(lines, line(row[:last], widths))
		if message := row[last]; i > 0 && message.text != "" {
			lines = append(lines, wrapped(message, t.Width)...)
		}
	}
	return lines
}

// messageColumn returns the index of the last column, which only rows with a condition have.
func messageColumn(wide bool) int {
	if wide {
		return 9
	}
	return 5
}

// wrapped returns the lines of a message below its row.
func wrapped(c cell, width int) []string {
	var lines []string
	limit := max(width-len(conditionIndent), 20)
	for text := range strings.SplitSeq(wordwrap.WrapString(c.text, uint(limit)), "\n") {
		if c.colored != "" {
			text = strings.Replace(c.colored, c.text, text, 1)
		}
		lines = append(lines, conditionIndent+text)
	}
	return lines
}

// line formats a row without trailing spaces.
func line(row []cell, widths []int) string {
	var b strings.Builder
	pending := 0
	for i, c := range row {
		if c.text != "" {
			b.WriteString(strings.Repeat(" ", pending))
			pending = 0
			if c.colored != "" {
				b.WriteString(c.colored)
			} else {
				b.WriteString(c.text)
			}
		}
		pending += widths[i] - utf8.RuneCountInString(c.text) + len(columnGap)
	}
	return b.String()
}

// palette holds the colors of a tree; without colors, texts are unchanged.
type palette struct {
	green, red, yellow, white, cyan, gray, bold func(string) string
}

func newPalette(on bool) palette {
	paint := func(attributes ...color.Attribute) func(string) string {
		c := color.New(attributes...)
		if on {
			c.EnableColor()
		} else {
			c.DisableColor()
		}
		return func(text string) string {
			if text == "" {
				return ""
			}
			return c.Sprint(iostreams.Clean(text))
		}
	}
	return palette{
		green: paint(color.FgGreen), red: paint(color.FgRed), yellow: paint(color.FgYellow), white: paint(color.FgWhite),
		cyan: paint(color.FgCyan), gray: paint(color.FgHiBlack), bold: paint(color.FgHiWhite, color.Bold),
	}
}

// of returns the color of a condition's state.
func (p palette) of(c *Condition) func(string) string {
	switch {
	case c.Status == "True":
		return p.green
	case c.Status == "":
		return p.gray
	case c.Severity == "Error":
		return p.red
	case c.Severity == "Warning":
		return p.yellow
	default:
		return p.white
	}
}
