package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons are the reasons of a derived condition, by its status.
type Reasons struct{ True, False, Unknown string }

// ReasonsOf returns the reasons by which the status of most derived conditions is named: Ready, NotReady and ReadyUnknown for Ready.
func ReasonsOf(t string) Reasons { return Reasons{True: t, False: "Not" + t, Unknown: t + "Unknown"} }

// Source is a condition that another is derived from.
type Source struct {
	metav1.Condition
	// Negative: True is bad, as of Deleting.
	Negative bool
	// Info: whatever the status is, it is neither an issue nor unknown.
	Info bool
}

// severity is what a source means for the derived condition. The highest decides.
type severity int

const (
	info severity = iota
	unknown
	issue
)

func (s Source) severity() severity {
	switch {
	case s.Info:
		return info
	case s.Status == metav1.ConditionUnknown:
		return unknown
	case (s.Status == metav1.ConditionTrue) == s.Negative:
		return issue
	}
	return info
}

// text is what is said about a source: its message, of issues without one the reason.
func (s Source) text() string {
	if s.severity() == info {
		return s.Message
	}
	return cmp.Or(s.Message, s.Reason)
}

// Summary derives the condition t of an object from others of it, in their order: False if there is an issue, otherwise Unknown if
// something is unknown, otherwise True. The message has a line for each issue and each unknown, or for each True source with a message.
func Summary(t string, reasons Reasons, sources ...Source) metav1.Condition {
	decides := worst(sources)
	var lines []string
	for _, s := range sources {
		if said(s, decides) {
			lines = append(lines, Line(s.Type, s.text()))
		}
	}
	return derived(t, reasons, decides, false, lines)
}

// said reports whether a source is mentioned in a derived condition.
func said(s Source, decides severity) bool {
	if decides == info {
		return s.text() != ""
	}
	return s.severity() != info
}

func worst(sources []Source) severity {
	decides := info
	for _, s := range sources {
		decides = max(decides, s.severity())
	}
	return decides
}

// derived returns the condition that follows from the highest severity. Of a negative condition, an issue makes it True.
func derived(t string, reasons Reasons, decides severity, negative bool, lines []string) metav1.Condition {
	message := strings.Join(lines, "\n")
	switch {
	case decides == unknown:
		return Unknown(t, reasons.Unknown, "%s", message)
	case (decides == issue) != negative:
		return False(t, reasons.False, "%s", message)
	}
	return True(t, reasons.True, "%s", message)
}

// Line returns a list item of a message: "* subject: message", or a nested list if the message is one or has several lines.
func Line(subject, message string) string {
	switch {
	case strings.HasPrefix(message, "* "):
		return "* " + subject + ":\n" + indented(message, "  ")
	case strings.Contains(message, "\n"):
		first, rest, _ := strings.Cut(message, "\n")
		return "* " + subject + ":\n  * " + first + "\n" + indented(rest, "    ")
	}
	return "* " + subject + ": " + message
}

func indented(text, by string) string { return by + strings.ReplaceAll(text, "\n", "\n"+by) }

// Child is an object of an aggregate, and its condition.
type Child struct {
	// Kind and Name identify the object.
	Kind, Name string
	// ControlPlane objects are mentioned first.
	ControlPlane bool
	Source
}

// groupsShown is how many groups of objects with the same message an aggregate mentions, and namesShown how many names of a group.
const groupsShown, namesShown = 3, 3

// Aggregate derives the condition t from one condition of several objects: see Summary. If negative is set, t is True if there is an
// issue, as for ScalingUp. Objects with the same message share a line.
func Aggregate(t string, reasons Reasons, negative bool, children []Child) metav1.Condition {
	decides := info
	for _, c := range children {
		decides = max(decides, c.severity())
	}
	groups := grouped(children, decides)
	var lines []string
	for i, g := range groups {
		if i == groupsShown {
			lines = append(lines, others(groups[i:])...)
			break
		}
		lines = append(lines, Line(g.subject(), g.text))
	}
	return derived(t, reasons, decides, negative, lines)
}

// group is objects of one kind about which the same is said.
type group struct {
	kind, text   string
	severity     severity
	controlPlane bool
	names        []string
}

// grouped returns the groups of an aggregate: by kind, issues first, control planes first, large groups first.
func grouped(children []Child, decides severity) []group {
	var groups []group
	for _, c := range children {
		if !said(c.Source, decides) {
			continue
		}
		i := slices.IndexFunc(groups, func(g group) bool { return g.kind == c.Kind && g.text == c.text() && g.severity == c.severity() })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{kind: c.Kind, text: c.text(), severity: c.severity()})
		}
		groups[i].controlPlane = groups[i].controlPlane || c.ControlPlane
		groups[i].names = append(groups[i].names, c.Name)
	}
	for _, g := range groups {
		slices.Sort(g.names)
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(b.severity, a.severity), first(b.controlPlane, a.controlPlane),
			cmp.Compare(len(b.names), len(a.names)), cmp.Compare(a.names[0], b.names[0]))
	})
	return groups
}

// first compares booleans: false is less than true.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// subject returns "Machine a", "Machines a, b", or "Machines a, b, c, ... (2 more)".
func (g group) subject() string {
	if len(g.names) == 1 {
		return g.kind + " " + g.names[0]
	}
	return g.kind + "s " + Names(g.names)
}

// Names returns at most three names of a list, and how many more there are: "a, b, c, ... (2 more)".
func Names(all []string) string {
	if more := len(all) - namesShown; more > 0 {
		return fmt.Sprintf("%s, ... (%d more)", strings.Join(all[:namesShown], ", "), more)
	}
	return strings.Join(all, ", ")
}

// others returns a line for each kind and severity of the groups that are not mentioned.
func others(groups []group) []string {
	type key struct {
		kind     string
		severity severity
	}
	var keys []key
	count := map[key]int{}
	for _, g := range groups {
		k := key{g.kind, g.severity}
		if count[k] == 0 {
			keys = append(keys, k)
		}
		count[k] += len(g.names)
	}
	var lines []string
	for _, k := range keys {
		kind := k.kind
		if count[k] > 1 {
			kind += "s"
		}
		lines = append(lines, fmt.Sprintf("And %d %s with %s", count[k], kind, [...]string{
			info: "additional info", unknown: "status unknown", issue: "other issues"}[k.severity]))
	}
	return lines
}
