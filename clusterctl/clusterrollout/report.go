package clusterrollout

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// shown is how many Clusters in change, and how many messages, are shown.
const shown = 10

// Lines returns a status for people, at a time. command completes the commands that it proposes.
func (s *Status) Lines(now time.Time, command func(string) string) []string {
	lines := []string{s.headline(), "Change: " + Change(&s.Change)}
	if s.Message != "" {
		lines = append(lines, s.Message)
	}
	lines = append(lines, s.others()...)
	if p := s.Plan; p != nil && p.Hash != "" {
		lines = append(lines, fmt.Sprintf("Plan %s: %s", p.Hash, Totals(p)))
		if p.Irreversible != "" {
			lines = append(lines, "Cannot go back: "+p.Irreversible)
		}
	}
	lines = append(append(lines, ""), s.table(now)...)
	lines = append(lines, s.inChange(now)...)
	lines = append(lines, list("Failed", s.Failed)...)
	lines = append(lines, list("Skipped", s.Skipped)...)
	if len(s.Next) > 0 {
		lines = append(lines, "", "Next:")
	}
	for _, step := range s.Next {
		lines = append(lines, fmt.Sprintf("  %s: %s", step.What, command(step.Command)))
	}
	for i := range lines {
		lines[i] = iostreams.Clean(lines[i])
	}
	return lines
}

// headline returns the phase and the progress, in one line.
func (s *Status) headline() string {
	var total, done, failed, skipped int32
	for _, stage := range s.Stages {
		total, done, failed, skipped = total+stage.Total, done+stage.Done, failed+stage.Failed, skipped+stage.Skipped
	}
	line := fmt.Sprintf("ClusterRollout %s/%s: %s, %d of %s done", s.Namespace, s.Name, s.Phase, done, counted(total, "Cluster"))
	if failed > 0 {
		line += fmt.Sprintf(", %d failed", failed)
	}
	if skipped > 0 {
		line += fmt.Sprintf(", %d skipped", skipped)
	}
	return line
}

// others returns the conditions that say more than the message.
func (s *Status) others() []string {
	var lines []string
	for _, c := range s.Conditions {
		if c.Message == "" || c.Message == s.Message || c.Type == fleetv1.RolloutCompletedCondition || c.Status != metav1.ConditionTrue {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %s", c.Type, c.Message))
	}
	return lines
}

// table returns the stages.
func (s *Status) table(now time.Time) []string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "STAGE\tCLUSTERS\tWAITING\tUPDATING\tDONE\tFAILED\tSKIPPED\tROLLED BACK\t")
	for _, g := range s.Stages {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", g.Name, g.Total, g.Waiting, g.Updating, g.Done, g.Failed, g.Skipped, g.RolledBack,
			g.state(now))
	}
	_ = w.Flush() // The writer has no errors.
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// state returns what a stage waits for, or who has approved it.
func (g *StageStatus) state(now time.Time) string {
	var parts []string
	switch {
	case g.Waits:
		parts = append(parts, "waits for approval")
	case g.ApprovedBy != "":
		parts = append(parts, "approved by "+g.ApprovedBy)
	case g.Gate == fleetv1.RolloutGateApproval:
		parts = append(parts, "needs approval")
	}
	if g.SoakUntil != nil && g.SoakUntil.After(now) {
		parts = append(parts, fmt.Sprintf("soak ends in %s", age(g.SoakUntil.Time, metav1.NewTime(now))))
	}
	return strings.Join(parts, ", ")
}

// inChange returns the Clusters in change.
func (s *Status) inChange(now time.Time) []string {
	if len(s.InChange) == 0 {
		return nil
	}
	lines := []string{"", fmt.Sprintf("In change (%d):", len(s.InChange))}
	for i, c := range s.InChange {
		if i == shown {
			lines = append(lines, fmt.Sprintf("  ... and %d more, for a shorter time", len(s.InChange)-shown))
			break
		}
		lines = append(lines, fmt.Sprintf("  %s  %s, %s for %s: %s", c.Name, c.Stage, words(string(c.State)), age(now, c.Since),
			cmp.Or(c.Message, "waits until it is up to date and healthy")))
	}
	return lines
}

// list returns groups of Clusters.
func list(title string, groups []MessageGroup) []string {
	if len(groups) == 0 {
		return nil
	}
	total := 0
	for _, g := range groups {
		total += len(g.Clusters)
	}
	lines := []string{"", fmt.Sprintf("%s (%d):", title, total)}
	for i, g := range groups {
		if i == shown {
			lines = append(lines, fmt.Sprintf("  ... and %d more messages: see --output yaml", len(groups)-shown))
			break
		}
		lines = append(lines, fmt.Sprintf("  %s: %s", names(g.Clusters, false), cmp.Or(g.Message, "no reason is known")))
	}
	return lines
}

// Halted reports whether a rollout has halted.
func Halted(r *fleetv1.ClusterRollout) bool {
	return r.Status.Phase == fleetv1.RolloutHalted || report.IsTrue(r, fleetv1.RolloutHaltedCondition)
}
