package campaign

import (
	"fmt"
	"strings"

	"sigs.k8s.io/cluster-api/test/fault/scenario"
	"sigs.k8s.io/cluster-api/test/fault/script"
)

// Case is what a run does.
type Case struct {
	// Scenario is what happens anyway.
	Scenario scenario.Scenario
	// Family is what kind of faults these are. Empty: the calm run.
	Family string
	// Faults are what goes wrong.
	Faults []script.Fault
}

const (
	scenarioEnd = "/"
	faultEnd    = ","
)

// Replay is the case as --replay takes it.
func (c Case) Replay() string {
	var faults []string
	for _, f := range c.Faults {
		faults = append(faults, f.String())
	}
	return c.Scenario.Name + scenarioEnd + strings.Join(faults, faultEnd)
}

// ParseCase reads what Replay writes.
func ParseCase(text string) (Case, error) {
	name, rest, _ := strings.Cut(text, scenarioEnd)
	s, ok := scenario.Named(name)
	if !ok {
		return Case{}, fmt.Errorf("there is no scenario %q", name)
	}
	c := Case{Scenario: s, Family: "replay"}
	for one := range strings.SplitSeq(rest, faultEnd) {
		if one == "" {
			continue
		}
		f, err := script.Parse(one)
		if err != nil {
			return Case{}, err
		}
		c.Faults = append(c.Faults, f)
	}
	return c, nil
}
