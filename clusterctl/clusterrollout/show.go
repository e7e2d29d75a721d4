package clusterrollout

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
)

// named is how many Clusters of a group are named.
const named = 3

// Show writes a plan for people: its stages, and its Clusters in groups with the same effect. all names every Cluster.
func Show(out io.Writer, p *Plan, all bool) error {
	s := &p.Summary
	fmt.Fprintf(out, "ClusterRollout %s/%s: %s\n", p.Namespace, p.Name, Change(&p.Change))
	fmt.Fprintf(out, "Plan %s: %s\n", s.Hash, Totals(s))
	if p.PlannedHash != "" && p.PlannedHash != s.Hash {
		fmt.Fprintf(out, "The plan that the rollout follows is %s: since then, it has changed Clusters, or they or their class have changed.\n",
			p.PlannedHash)
	}
	if s.Irreversible != "" {
		fmt.Fprintf(out, "Cannot go back: %s.\n", s.Irreversible)
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "STAGE\tCLUSTERS\tREPLACING\tMACHINES\tIN PLACE\tUNCHANGED\tFORBIDDEN\tUNKNOWN\tGATE")
	for _, stage := range p.Stages {
		counts, machines := map[fleetv1.RolloutEffect]int{}, int32(0)
		for _, c := range stage.Clusters {
			counts[c.Effect]++
			machines += c.Machines
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", stage.Name, len(stage.Clusters), counts[fleetv1.RolloutReplacing], machines,
			counts[fleetv1.RolloutInPlace], counts[fleetv1.RolloutUnchanged], counts[fleetv1.RolloutForbidden], counts[fleetv1.RolloutUnknown],
			cmp.Or(stage.Gate, fleetv1.RolloutGateNone))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, g := range groups(p.Stages) {
		fmt.Fprintf(out, "%s: %s\n", g.title(), names(g.clusters, all))
	}
	if len(p.Unassigned) > 0 {
		fmt.Fprintf(out, "Not changed, because no stage selects them: %s\n", names(p.Unassigned, all))
	}
	return nil
}

// Change returns what a change sets, for people.
func Change(c *fleetv1.RolloutChange) string {
	var parts []string
	if c.ClassRef.Name != "" {
		parts = append(parts, "ClusterClass "+strings.TrimPrefix(c.ClassRef.Namespace+"/"+c.ClassRef.Name, "/"))
	}
	if c.Version != "" {
		parts = append(parts, "version "+c.Version)
	}
	for _, v := range c.Variables {
		parts = append(parts, fmt.Sprintf("variable %s = %s", v.Name, shortened(string(v.Value.Raw), 60)))
	}
	return iostreams.Clean(strings.Join(parts, ", "))
}

// Totals returns the counts of a plan, for people.
func Totals(s *fleetv1.RolloutPlan) string {
	parts := []string{counted(value(s.Clusters), "Cluster")}
	for _, p := range []struct {
		count *int32
		text  string
	}{
		{s.Replacing, fmt.Sprintf("in %%d, %s are replaced", counted(value(s.Machines), "Machine"))},
		{s.InPlace, "%d change in place"},
		{s.Unchanged, "%d stay as they are"},
		{s.Forbidden, "%d cannot be changed"},
		{s.Unknown, "for %d, no plan could be made"},
	} {
		if value(p.count) > 0 {
			parts = append(parts, fmt.Sprintf(p.text, *p.count))
		}
	}
	return strings.Join(parts, "; ")
}

func value(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

func counted[N int | int32](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// group is Clusters with the same effect.
type group struct {
	effect   fleetv1.RolloutEffect
	machines int32
	reason   string
	clusters []string
}

func (g *group) title() string {
	n := counted(len(g.clusters), "Cluster")
	reason := ""
	if g.reason != "" {
		reason = ", " + g.reason
	}
	switch g.effect {
	case fleetv1.RolloutReplacing:
		return fmt.Sprintf("%s replaced in %s%s", counted(g.machines, "Machine"), n, reason)
	case fleetv1.RolloutInPlace:
		return "Changed in place, " + n + reason
	case fleetv1.RolloutUnchanged:
		return "Unchanged, " + n + reason
	default:
		return fmt.Sprintf("%s, %s%s", g.effect, n, reason)
	}
}

// groups returns the Clusters of all stages, those that need attention first.
func groups(stages []PlannedStage) []*group {
	order := []fleetv1.RolloutEffect{
		fleetv1.RolloutForbidden, fleetv1.RolloutUnknown, fleetv1.RolloutReplacing, fleetv1.RolloutInPlace, fleetv1.RolloutUnchanged,
	}
	var all []*group
	known := map[groupKey]*group{}
	for _, stage := range stages {
		for _, c := range stage.Clusters {
			key := groupKey{c.Effect, c.Machines, general(c.Reason, c.Name)}
			if known[key] == nil {
				known[key] = &group{effect: c.Effect, machines: c.Machines, reason: key.reason}
				all = append(all, known[key])
			}
			known[key].clusters = append(known[key].clusters, c.Name)
		}
	}
	slices.SortStableFunc(all, func(a, b *group) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.effect), slices.Index(order, b.effect)),
			cmp.Compare(len(b.clusters), len(a.clusters)), cmp.Compare(b.machines, a.machines))
	})
	return all
}

// groupKey is what the Clusters of a group have in common.
type groupKey struct {
	effect   fleetv1.RolloutEffect
	machines int32
	reason   string
}

// names returns the names of Clusters, sorted; the first few unless all are wanted.
func names(clusters []string, all bool) string {
	sorted := slices.Sorted(slices.Values(clusters))
	if all || len(sorted) <= named {
		return iostreams.Clean(strings.Join(sorted, ", "))
	}
	return iostreams.Clean(fmt.Sprintf("%s and %d more", strings.Join(sorted[:named], ", "), len(sorted)-named))
}

// general returns a text about a Cluster as it is for others, so that equal ones can be counted: with a placeholder in place of the name.
func general(text, name string) string {
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	var out strings.Builder
	for rest := text; ; {
		at := strings.Index(rest, name)
		if at < 0 || name == "" {
			return out.String() + rest
		}
		before, after := []rune(out.String()+rest[:at]), []rune(rest[at+len(name):])
		out.WriteString(rest[:at])
		if len(before) > 0 && word(before[len(before)-1]) || len(after) > 0 && word(after[0]) {
			out.WriteString(name)
		} else {
			out.WriteString("<cluster>")
		}
		rest = rest[at+len(name):]
	}
}

func shortened(text string, size int) string {
	if r := []rune(text); len(r) > size {
		return string(r[:size-1]) + "…"
	}
	return text
}
