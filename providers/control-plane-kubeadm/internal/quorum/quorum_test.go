package quorum

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Members may report different lists of members.
func TestMayRemove(t *testing.T) {
	// The syntax is "a: a b c", a member and its list of members. "a!" has an alarm, "a?" does not respond, "a*" is the leader,
	// and "-" is a member that has not started.
	parse := func(text string) Member {
		name, known, _ := strings.Cut(text, ":")
		m := Member{Node: strings.TrimRight(name, "!?*"), Members: strings.Fields(strings.ReplaceAll(known, "-", "unstarted"))}
		for i := range m.Members {
			m.Members[i] = strings.TrimPrefix(m.Members[i], "unstarted")
		}
		slices.Sort(m.Members)
		if strings.Contains(name, "!") {
			m.Alarms = []string{"NOSPACE"}
		}
		if strings.Contains(name, "?") {
			m.Err = errors.New("no response")
		}
		m.Leader = strings.Contains(name, "*")
		return m
	}
	for _, tc := range []struct {
		reason    string
		responses []string
		removed   string
		leader    string
		missing   string
	}{
		{reason: "all are healthy", responses: []string{"a*: a b c", "b: a b c", "c: a b c"}, removed: "a", leader: "a"},
		{reason: "the unhealthy one is removed", responses: []string{"a*: a b c", "b: a b c", "c?"}, removed: "c", leader: "a"},
		{reason: "a healthy one while another is not", responses: []string{"a*: a b c", "b: a b c", "c?"}, removed: "b", leader: "a", missing: "2 healthy etcd members other than b (found 1)"},
		{reason: "one of two is unhealthy", responses: []string{"a: a b", "b?"}, removed: "a", missing: "a healthy etcd member other than a (found 0)"},
		{reason: "two of three are unhealthy", responses: []string{"a: a b c", "b?", "c?"}, removed: "b", missing: "2 healthy etcd members other than b (found 1)"},
		{reason: "two of five are, and one of them is removed", responses: []string{"a*: a b c d e", "b: a b c d e", "c: a b c d e", "d?", "e?"}, removed: "e", leader: "a"},
		{
			reason: "two of five are, and another one is removed", responses: []string{"a*: a b c d e", "b: a b c d e", "c: a b c d e", "d?", "e?"}, removed: "a", leader: "a",
			missing: "3 healthy etcd members other than a (found 2)",
		},
		{reason: "a member with an alarm is unhealthy", responses: []string{"a*: a b c", "b!: a b c", "c: a b c"}, removed: "c", leader: "a", missing: "other than c (found 1)"},
		{reason: "one lags behind and does not list the third", responses: []string{"a: a b", "b*: a b c", "c: a b c"}, removed: "a", leader: "b"},
		{reason: "members that have not started count", responses: []string{"a*: a b - -", "b: a b - -"}, removed: "b", leader: "a", missing: "2 healthy etcd members other than b (found 1)"},
		{reason: "the last one", responses: []string{"a*: a"}, removed: "a", leader: "a", missing: "the last one cannot be removed"},
		{reason: "one of two", responses: []string{"a*: a b", "b: a b"}, removed: "a", leader: "a"},
		{reason: "one of two, and the other does not respond", responses: []string{"a: a b", "b?"}, removed: "a", missing: "other than a (found 0)"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var responses []Member
			for _, text := range tc.responses {
				responses = append(responses, parse(text))
			}
			cluster := Of(responses)
			why := cluster.MayRemove(tc.removed)
			if (why == "") != (tc.missing == "") || !strings.Contains(why, tc.missing) {
				t.Errorf("missing: %q, want %q", why, tc.missing)
			}
			if cluster.Leader != tc.leader {
				t.Errorf("leader %q, want %q", cluster.Leader, tc.leader)
			}
		})
	}
}

func TestMayRemoveWithUnhealthyMembers(t *testing.T) {
	up := func(node string, members ...string) Member {
		return Member{Node: node, Members: members, ClusterID: 1}
	}
	down := func(node string) Member { return Member{Node: node, Err: errors.New("no response")} }
	abc := []string{"a", "b", "c"}
	cases := []struct {
		reason string
		asked  []Member
		remove string
		want   bool
	}{
		{"all are healthy", []Member{up("a", abc...), up("b", abc...), up("c", abc...)}, "a", true},
		{"the removed one is down", []Member{down("a"), up("b", abc...), up("c", abc...)}, "a", true},
		{"another one is down", []Member{up("a", abc...), down("b"), up("c", abc...)}, "a", false},
		{"another one was not queried", []Member{up("a", abc...), up("c", abc...)}, "a", false},
		{"another one has an alarm", []Member{up("a", abc...), {Node: "b", Members: abc, Alarms: []string{"NOSPACE"}}, up("c", abc...)}, "a", false},
		{"one lags behind and lists fewer", []Member{up("a", "a", "b"), up("b", abc...)}, "a", false},
		{"the last one", []Member{up("a", "a")}, "a", false},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			if got := Of(tc.asked).MayRemove(tc.remove); cmp.Diff(tc.want, got == "") != "" {
				t.Errorf("%s: missing %q", tc.reason, got)
			}
		})
	}
}

// TestMayAdd checks that a quorum is healthy even if the new member never starts.
func TestMayAdd(t *testing.T) {
	for _, tc := range []struct {
		reason          string
		members, health int
		want            string
	}{
		{"the only member is healthy, but two would need both", 1, 1, "2 healthy etcd members (found 1)"},
		{"two of two", 2, 2, ""},
		{"one of two", 2, 1, "2 healthy etcd members (found 1)"},
		{"two of three", 3, 2, "3 healthy etcd members (found 2)"},
		{"three of three", 3, 3, ""},
		{"three of four: one more is five", 4, 3, ""},
		{"no member responds", 0, 0, "a healthy etcd member (found 0)"},
	} {
		names := []string{"a", "b", "c", "d"}
		if got := (Cluster{Members: names[:tc.members], Healthy: names[:tc.health]}).MayAdd(); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
}
