package campaign

import (
	"fmt"
	"strings"

	"sigs.k8s.io/cluster-api/test/fault/scenario"
	"sigs.k8s.io/cluster-api/test/fault/script"
)

// Case is the input of a run.
type Case struct {
	// Scenario is the operation on the Cluster.
	Scenario scenario.Scenario
	// Family is the name of the kind of faults. Empty: the baseline run.
	Family string
	// Faults are the faults to inject.
	Faults []script.Fault
}

const (
	scenarioEnd = "/"
	faultEnd    = ","
)

// Replay returns the argument of --replay that repeats the case.
func (c Case) Replay() string {
	var faults []string
	for _, f := range c.Faults {
		faults = append(faults, f.String())
	}
	return c.Scenario.Name + scenarioEnd + strings.Join(faults, faultEnd)
}

// ParseCase parses the output of Replay.
func ParseCase(text string) (Case, error) {
	name, rest, _ := strings.Cut(text, scenarioEnd)
	s, ok := scenario.Named(name)
	if !ok {
		return Case{}, fmt.Errorf("unknown scenario %q", name)
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
