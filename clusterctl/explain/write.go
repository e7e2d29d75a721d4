package explain

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// maxOthers is how many causes besides the root cause Write prints.
const maxOthers = 10

// Write writes a report as text: one line with the root cause, the chain to it, what to do, and what else was found.
func Write(w io.Writer, r Report, now time.Time) error {
	b := &strings.Builder{}
	name := r.Cluster.Namespace + "/" + r.Cluster.Name
	if r.Healthy {
		fmt.Fprintf(b, "Cluster %s waits for nothing: %s\n", name, r.Summary)
	} else {
		root := r.Causes[0]
		fmt.Fprintf(b, "Cluster %s waits for %s: %s\n\n", name, root.Object, root.line(now))
		for i, link := range root.Chain {
			indent := ""
			if i > 0 {
				indent = strings.Repeat("  ", i-1) + "└─"
			}
			fmt.Fprintln(b, strings.TrimRight(indent+link.Object.String()+"  "+link.State, " "))
		}
		section(b, "What to do", root.Actions)
		var events []string
		for _, e := range root.Events {
			events = append(events, fmt.Sprintf("%s ago: %s: %s", duration.HumanDuration(now.Sub(e.Time.Time)), e.Reason, e.Message))
		}
		section(b, "Newest warnings about "+root.Object.String(), events)
		section(b, "Also found", others(r.Causes[1:], now))
	}
	section(b, "Act in time", upcoming(r.Upcoming))
	section(b, "Could not be read", r.Unread)
	_, err := io.WriteString(w, b.String())
	return err
}

func upcoming(causes []Cause) []string {
	var lines []string
	for _, c := range causes {
		lines = append(lines, c.Object.String()+": "+c.Message+". "+strings.Join(c.Actions, ". "))
	}
	return lines
}

// line returns "message (Reason, for 5m)".
func (c Cause) line(now time.Time) string {
	suffix := string(c.Reason)
	if c.Since != nil {
		suffix += ", for " + duration.HumanDuration(now.Sub(c.Since.Time))
	}
	return strings.TrimSpace(c.Message) + " (" + suffix + ")"
}

func others(causes []Cause, now time.Time) []string {
	var lines []string
	for i := range causes {
		if i == maxOthers {
			return append(lines, fmt.Sprintf("... and %d more: see -o json", len(causes)-maxOthers))
		}
		lines = append(lines, causes[i].Object.String()+": "+causes[i].line(now))
	}
	return lines
}

func section(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, line := range lines {
		fmt.Fprintf(b, "  - %s\n", line)
	}
}
