package campaign

import (
	"bytes"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"sigs.k8s.io/cluster-api/test/fault/invariant"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

func TestReplayRoundTrip(t *testing.T) {
	const text = "create-1x1/capim-manager:patch:inmemorymachines#1=kill-after,m:create:@secrets#2=black-hole(5s)"
	c, err := ParseCase(text)
	if err != nil {
		t.Fatal(err)
	}
	if c.Replay() != text {
		t.Errorf("%s is parsed as %s", text, c.Replay())
	}
	for _, text := range []string{"no-such-scenario/", "create-1x1/nonsense"} {
		if c, err := ParseCase(text); err == nil {
			t.Errorf("%s is parsed as %s", text, c.Replay())
		}
	}
}

// TestShare distributes each run to exactly one of several Campaigns.
func TestShare(t *testing.T) {
	var runs []Case
	for _, text := range []string{"", "m:create:@secrets#1=kill-after", "m:create:@secrets#2=kill-after", "m:create:@secrets#3=kill-after"} {
		for _, s := range scenario.All() {
			one, err := ParseCase(s.Name + "/" + text)
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, one)
		}
	}
	whole := &Campaign{Scenarios: scenario.All(), Skip: sets.New(runs[0].Replay())}
	half := whole.Share(0, len(whole.Scenarios)+1)
	for _, test := range []struct {
		reason string
		of     *Campaign
		shares int
	}{
		{"whole scenarios", whole, 3},
		{"parts of scenarios", whole, len(whole.Scenarios) + 1},
		{"parts of a part", half, 2 * len(whole.Scenarios)},
	} {
		for _, run := range runs {
			in := 0
			for i := range test.shares {
				if share := test.of.Share(i, test.shares); share.has(run) {
					in++
				}
			}
			want := 0
			if test.of.has(run) {
				want = 1
			}
			if in != want {
				t.Errorf("%s: %d shares have %q, want %d", test.reason, in, run.Replay(), want)
			}
		}
	}
	if whole.has(runs[0]) || !whole.has(runs[1]) {
		t.Error("exactly the first run must be skipped")
	}
}

func (c *Campaign) has(one Case) bool {
	return c.includes(one) && slices.ContainsFunc(c.Scenarios, func(s scenario.Scenario) bool { return s.Name == one.Scenario.Name })
}

// TestExecuted reads the output of a Campaign.
func TestExecuted(t *testing.T) {
	out := &bytes.Buffer{}
	c := &Campaign{Out: out}
	for text, violations := range map[string][]invariant.Violation{
		"create-1x1/m:create:@secrets#1=kill-after": nil, "create-1x1/m:create:@secrets#2=kill-after": {{Rule: "nothing is left"}},
	} {
		one, err := ParseCase(text)
		if err != nil {
			t.Fatal(err)
		}
		c.print(&Result{Case: one, Violations: violations})
	}
	got, err := Executed(out)
	if err != nil || !got.Equal(sets.New("create-1x1/m:create:@secrets#1=kill-after")) {
		t.Errorf("executed %v, %v", got.UnsortedList(), err)
	}
}
