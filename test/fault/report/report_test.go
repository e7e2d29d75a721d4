package report

import (
	"strings"
	"testing"

	"sigs.k8s.io/cluster-api/test/fault/campaign"
	"sigs.k8s.io/cluster-api/test/fault/invariant"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

func TestViolationsAreCounted(t *testing.T) {
	story := scenario.Scenario{Name: "story"}
	results := []*campaign.Result{
		{Case: campaign.Case{Scenario: story}},
		{Case: campaign.Case{Scenario: story, Family: "kill"}, Happened: 1},
		{Case: campaign.Case{Scenario: story, Family: "kill"}, Happened: 1, Violations: []invariant.Violation{{}, {}}},
	}
	out := &strings.Builder{}
	violations, err := Print(out, results)
	if err != nil || violations != 2 {
		t.Errorf("%d violations, %v", violations, err)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	for i, begin := range []string{"SCENARIO", "story none 1 0", "story kill 2 2", "all 3 2"} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], begin) {
			t.Errorf("line %d begins with %q: %v", i, begin, lines)
		}
	}
}
