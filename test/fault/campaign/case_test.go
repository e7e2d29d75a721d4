package campaign

import "testing"

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
