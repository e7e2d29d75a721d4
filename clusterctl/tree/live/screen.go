package live

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// Terminal escape sequences.
const (
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
)

// Screen is where progress is shown.
type Screen struct {
	W io.Writer
	// Terminal reports whether lines can be redrawn; Color whether they may be colored.
	Terminal, Color bool
	// Size returns the width and height of the terminal, 0 if they are unknown. It may be nil.
	Size func() (width, height int)
	// ChangesOnly leaves out the states that objects have at first, where lines cannot be redrawn.
	ChangesOnly bool

	last    []string
	started time.Time
	states  map[string]string
}

// NewScreen returns the Screen behind the stream for messages.
func NewScreen(io *iostreams.Streams) Screen {
	w, columns := io.Progress()
	return Screen{W: w, Terminal: columns > 0, Color: io.OutColor() && columns > 0, Size: io.ErrSize}
}

// Draw replaces the previous drawing, if it differs.
func (s *Screen) Draw(lines []string) {
	clean := make([]string, 0, len(lines))
	for _, l := range lines {
		clean = append(clean, iostreams.CleanColored(l))
	}
	lines = s.fit(clean)
	if slices.Equal(lines, s.last) {
		return
	}
	var b strings.Builder
	b.WriteString(s.home())
	for i, l := range lines {
		// Unchanged lines are skipped, and no line is cleared before it is redrawn, to avoid flickering.
		if i >= len(s.last) || s.last[i] != l {
			b.WriteString(l + clearLine)
		}
		b.WriteString("\n")
	}
	if len(lines) < len(s.last) {
		b.WriteString(clearBelow)
	}
	fmt.Fprint(s.W, b.String())
	s.last = lines
}

// Clear removes the drawing, before a result is printed.
func (s *Screen) Clear() {
	if len(s.last) > 0 {
		fmt.Fprint(s.W, s.home()+clearBelow)
		s.last = nil
	}
}

// home moves the cursor to where the last drawing began.
func (s *Screen) home() string {
	if len(s.last) == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\r", len(s.last))
}

// fit truncates lines that would wrap, and drops lines that would scroll away: they could not be redrawn.
func (s *Screen) fit(lines []string) []string {
	width, height := 0, 0
	if s.Size != nil {
		width, height = s.Size()
	}
	if height > 2 && len(lines) > height-1 {
		// Keep the last line, which is what is waited for.
		keep := height - 3
		cut := fmt.Sprintf("... %d more lines", len(lines)-1-keep)
		lines = append(append(append([]string{}, lines[:keep]...), cut), lines[len(lines)-1])
	}
	if width <= 0 {
		return lines
	}
	fitted := make([]string, 0, len(lines))
	for _, l := range lines {
		fitted = append(fitted, truncate(l, width-1))
	}
	return fitted
}

// truncate cuts a line to a number of visible characters; color sequences do not count and are kept.
func truncate(line string, width int) string {
	var b strings.Builder
	escape := false
	for _, r := range line {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r == '[' || r == ';' || r >= '0' && r <= '9'
		case width == 0:
			continue
		default:
			width--
			b.WriteRune(r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// transitions prints a line for each object whose state changed.
func (s *Screen) transitions(cluster types.NamespacedName, objects *tree.Objects, now time.Time) {
	initial := s.states == nil
	if initial {
		s.states, s.started = map[string]string{}, now
	}
	states := map[string]string{}
	var lines []string
	say := func(name, state string) {
		lines = append(lines, fmt.Sprintf("%6s  %s: %s", duration.ShortHumanDuration(now.Sub(s.started)), name, state))
	}
	for _, u := range objects.All() {
		if !printed(cluster, u) {
			continue
		}
		name, state := u.GetKind()+"/"+u.GetName(), stateOf(u)
		states[name] = state
		if s.states[name] != state {
			say(name, state)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.states)) {
		if _, ok := states[name]; !ok {
			say(name, "deleted")
		}
	}
	s.states = states
	if len(lines) > 0 && !(initial && s.ChangesOnly) {
		fmt.Fprintln(s.W, iostreams.Clean(strings.Join(lines, "\n")))
	}
}

// printed reports whether changes of the object are printed: infrastructure and bootstrap objects of a Machine change
// together with the Machine.
func printed(cluster types.NamespacedName, u *unstructured.Unstructured) bool {
	if u.GetKind() == "MachineSet" {
		return false
	}
	if u.GroupVersionKind().Group == clusterv1.GroupVersion.Group {
		return u.GetKind() != "Cluster" || u.GetName() == cluster.Name
	}
	for _, owner := range u.GetOwnerReferences() {
		if owner.Kind == "Machine" || owner.Kind == "MachinePool" {
			return false
		}
	}
	return true
}

// stateOf describes an object's state briefly. For Machines, of which there may be many, it is the phase, and the reason
// if something is wrong.
func stateOf(u *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	ready := tree.ConditionOf(u, string(clusterv1.ReadyV1Beta1Condition))
	if u.GetDeletionTimestamp() != nil {
		return "Deleting"
	}
	if u.GetKind() == tree.MachineKind.Kind && phase != "" && (ready == nil || ready.Severity != string(clusterv1.ConditionSeverityError)) {
		return phase
	}
	contract, _, _ := unstructured.NestedBool(u.Object, "status", "ready")
	switch {
	case ready == nil && phase == "" && contract:
		return "ready"
	case ready == nil && phase == "":
		return "created"
	case ready == nil:
		return phase
	case ready.Status == "True" && phase == "":
		return "ready"
	case ready.Status == "True":
		return phase + ", ready"
	case phase == "":
		return "not ready: " + ready.Reason
	default:
		return phase + ": " + ready.Reason
	}
}
