package tree

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mitchellh/go-wordwrap"
	"k8s.io/apimachinery/pkg/util/duration"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
)

// minWrapped is the least width of a wrapped message, in characters, however far it is indented.
const minWrapped = 20

// reportLines returns the lines of the table of a tree with reports, starting with the heading. What does not fit into the width is put
// below its row first, then shortened.
func reportLines(root *Node, s Style) []string {
	t := reportTable(root, table{Style: s})
	shorter := []table{{Style: s, apart: true}}
	if s.Short {
		shorter = append(shorter, table{Style: s, apart: true, omitted: root.Namespace},
			table{Style: s, apart: true, omitted: root.Namespace, omittedVersion: root.Version})
	}
	for _, next := range shorter {
		if _, total := t.widths(); s.Width == 0 || total <= s.Width {
			break
		}
		t = reportTable(root, next)
	}
	return t.lines()
}

// reportTable fills a table with a tree.
func reportTable(root *Node, t table) *table {
	t.palette = newPalette(t.Color)
	var heading []cell
	for _, name := range []string{"NAME", "REPLICAS", "AVAILABLE", "READY", "UP TO DATE", "STATUS", "REASON", "SINCE"} {
		heading = append(heading, cell{text: name})
	}
	if !t.apart {
		heading = append(heading, cell{text: "MESSAGE"})
	}
	t.add(heading...)
	t.report(root, "", "")
	return &t
}

// report adds the rows of a node: prefix precedes its own name, below the names of its descendants.
func (t *table) report(n *Node, prefix, below string) {
	pipe := "  "
	if len(n.Children) > 0 {
		pipe = "│ "
	}
	row := append([]cell{t.reportName(n, prefix)}, t.counters(n.Report)...)
	state := n.Ready // Of what has no report, such as the resources of a ClusterResourceSet.
	if n.Report != nil {
		state = n.Report.State
	}
	if state == nil || n.listed && len(n.Conditions) > 0 {
		t.add(row...)
	} else {
		t.state(row, below+pipe, *state, len(n.Group) > 0)
	}
	for i, c := range n.Conditions {
		glyph := below + pipe + conditionIndent + branch(i, len(n.Conditions))
		name := cell{text: glyph + iostreams.Clean(c.Type), colored: glyph + t.palette.cyan(c.Type)}
		t.state([]cell{name, {}, {}, {}, {}}, below+pipe, c, false)
	}
	for i, child := range n.Children {
		next := "│ "
		if i == len(n.Children)-1 {
			next = "  "
		}
		t.report(child, below+branch(i, len(n.Children)), below+next)
	}
}

// reportName returns the cell with the name of a node: kind, namespace and name, and the version.
func (t *table) reportName(n *Node, prefix string) cell {
	name := n.Name
	if n.Kind != "" && len(n.Group) == 0 {
		namespace := n.Namespace
		if namespace == t.omitted && n.Kind != ClusterKind.Kind {
			namespace = ""
		}
		name = n.Kind + " " + strings.TrimPrefix(namespace+"/"+n.Name, "/")
		if n.Version != "" && (n.Version != t.omittedVersion || n.Kind == ClusterKind.Kind) {
			name += ", " + n.Version
		}
	}
	deleting := t.deleting(n)
	colored := iostreams.Clean(name)
	if len(n.Group) > 0 {
		colored = t.palette.bold(name)
	}
	return cell{text: prefix + iostreams.Clean(name) + deleting, colored: prefix + colored + t.palette.red(deleting)}
}

// deleting returns the mark of objects that are being deleted.
func (t *table) deleting(n *Node) string {
	if !n.Deleting {
		return ""
	}
	return " (deleting since " + duration.HumanDuration(t.Now.Sub(n.Deleted)) + ")"
}

// counters returns the cells of the counters of a report, which may be nil.
func (t *table) counters(r *Report) []cell {
	cells := make([]cell, 4)
	if r == nil {
		return cells
	}
	cells[0].text = r.Replicas
	for i, n := range []*int64{r.Available, r.Ready, r.UpToDate} {
		if n != nil {
			cells[i+1].text = strconv.FormatInt(*n, 10)
		}
	}
	return cells
}

// state adds a row that ends with a condition, and a row for each further line of its message.
func (t *table) state(row []cell, prefix string, c Condition, group bool) {
	since := ""
	if !c.Since.IsZero() {
		since = duration.HumanDuration(t.Now.Sub(c.Since))
	}
	paint, paintMessage := t.paint(c), t.paint(c)
	if group {
		paintMessage = t.palette.gray
	}
	row = append(row, painted(c.Status, paint), painted(c.Reason, paint), cell{text: since})
	if t.apart {
		t.add(row...)
		t.messageBelow(prefix, c.Message, paintMessage)
		return
	}
	lines := messageLines(c.Message, maxMessage)
	t.add(append(row, painted(lines[0], paintMessage))...)
	for _, text := range lines[1:] {
		t.add(cell{text: prefix}, cell{}, cell{}, cell{}, cell{}, cell{}, cell{}, cell{}, painted(text, paintMessage))
	}
}

// messageBelow adds the lines of a message below its row.
func (t *table) messageBelow(prefix, message string, paint func(string) string) {
	if message == "" {
		return
	}
	indent := prefix + conditionIndent
	for _, text := range messageLines(message, min(maxMessage, t.Width-utf8.RuneCountInString(indent))) {
		t.add(cell{text: indent + iostreams.Clean(text), colored: indent + paint(text), free: true})
	}
}

// paint returns the color of a condition.
func (t *table) paint(c Condition) func(string) string {
	if c.Status == "" {
		return t.palette.gray
	}
	switch c.health() {
	case good:
		return t.palette.green
	case unknown:
		return t.palette.yellow
	}
	return t.palette.red
}

// messageLines returns the lines of a message of at most a width, at least one. What follows the mark of a list, * , is indented as its
// first line.
func messageLines(message string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(message, "\n") {
		text := strings.TrimLeft(line, " ")
		first := line[:len(line)-len(text)]
		if item, ok := strings.CutPrefix(text, "* "); ok {
			first, text = first+"* ", item
		}
		hang := strings.Repeat(" ", len(first))
		wrapped := wordwrap.WrapString(text, uint(max(width-len(hang), minWrapped)))
		lines = append(lines, strings.Split(first+strings.ReplaceAll(wrapped, "\n", "\n"+hang), "\n")...)
	}
	return lines
}
