package tree

import (
	"strconv"
	"strings"

	"github.com/mitchellh/go-wordwrap"
	"k8s.io/apimachinery/pkg/util/duration"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
)

// minWrapped is the least width of a wrapped message, in characters, however far it is indented.
const minWrapped = 20

// reportLines returns the lines of the table of a tree with reports, starting with the heading.
func reportLines(root *Node, s Style) []string {
	t := &table{Style: s, palette: newPalette(s.Color)}
	var heading []cell
	for _, name := range []string{"NAME", "REPLICAS", "AVAILABLE", "READY", "UP TO DATE", "STATUS", "REASON", "SINCE", "MESSAGE"} {
		heading = append(heading, cell{text: name})
	}
	t.add(heading...)
	t.report(root, "", "")
	return t.lines()
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
	if state == nil || len(n.Conditions) > 0 {
		t.add(row...)
	} else {
		t.state(row, below+pipe, *state, len(n.Group) > 0)
	}
	for i, c := range n.Conditions {
		glyph := below + pipe + conditionIndent + branch(i, len(n.Conditions))
		t.state([]cell{{glyph + iostreams.Clean(c.Type), glyph + t.palette.cyan(c.Type)}, {}, {}, {}, {}}, below+pipe, c, false)
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
		name = n.Kind + " " + strings.TrimPrefix(n.Namespace+"/"+n.Name, "/")
		if n.Version != "" {
			name += ", " + n.Version
		}
	}
	deleted := ""
	if n.Deleting {
		deleted = "!! DELETED !! "
	}
	colored := iostreams.Clean(name)
	if len(n.Group) > 0 {
		colored = t.palette.bold(name)
	}
	return cell{prefix + deleted + iostreams.Clean(name), prefix + t.palette.red(deleted) + colored}
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
	lines := messageLines(c.Message)
	t.add(append(row, painted(c.Status, paint), painted(c.Reason, paint), cell{text: since}, painted(lines[0], paintMessage))...)
	for _, text := range lines[1:] {
		t.add(cell{text: prefix}, cell{}, cell{}, cell{}, cell{}, cell{}, cell{}, cell{}, painted(text, paintMessage))
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

// messageLines returns the lines of a message, at least one. What follows the mark of a list, * , is indented as its first line.
func messageLines(message string) []string {
	var lines []string
	for line := range strings.SplitSeq(message, "\n") {
		text := strings.TrimLeft(line, " ")
		first := line[:len(line)-len(text)]
		if item, ok := strings.CutPrefix(text, "* "); ok {
			first, text = first+"* ", item
		}
		hang := strings.Repeat(" ", len(first))
		wrapped := wordwrap.WrapString(text, uint(max(maxMessage-len(hang), minWrapped)))
		lines = append(lines, strings.Split(first+strings.ReplaceAll(wrapped, "\n", "\n"+hang), "\n")...)
	}
	return lines
}
