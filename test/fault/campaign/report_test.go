package campaign

import (
	"strings"
	"testing"

	"sigs.k8s.io/cluster-api/test/fault/invariant"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

func TestViolationsAreCounted(t *testing.T) {
	s := scenario.Scenario{Name: "upgrade"}
	results := []*Result{
		{Case: Case{Scenario: s}},
		{Case: Case{Scenario: s, Family: "kill"}, Injected: 1},
		{Case: Case{Scenario: s, Family: "kill"}, Injected: 1, Violations: []invariant.Violation{{}, {}}},
	}
	out := &strings.Builder{}
	violations, err := Report(out, results)
	if err != nil || violations != 2 {
		t.Errorf("%d violations, %v; want 2", violations, err)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	for i, begin := range []string{"SCENARIO", "upgrade none 1 0", "upgrade kill 2 2", "all 3 2"} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], begin) {
			t.Errorf("line %d does not begin with %q: %v", i, begin, lines)
		}
	}
}
