package webhook

import (
	"strings"
	"testing"
)

func TestRefuse(t *testing.T) {
	// The syntax of a member: "a" is healthy, "a?" is not known to be, "a-" is being deleted.
	parse := func(text string) []member {
		var members []member
		for word := range strings.FieldsSeq(text) {
			members = append(members, member{
				Machine: strings.TrimRight(word, "?-"), Healthy: !strings.Contains(word, "?"), Leaving: strings.Contains(word, "-"),
			})
		}
		return members
	}
	tests := []struct {
		reason, members, machine string
		// want is a part of the message; empty: it is allowed.
		want string
	}{
		{"one of three healthy ones", "a b c", "a", ""},
		{"the unhealthy one of three: the usual repair", "a b c?", "c", ""},
		{"a healthy one of three, and another one is not", "a b c?", "a",
			"without the healthy member of Machine a, 1 of the 2 members that stay would be healthy, and 2 must be. The control plane has 3 members " +
				"(not healthy: c; being deleted: none)"},
		{"the only one: it is held until another one has joined", "a", "a", ""},
		{"one of two", "a b", "a", ""},
		{"the healthy one of two", "a b?", "a", "0 of the 1 members that stay would be healthy, and 1 must be"},
		{"the other one of two", "a b?", "b", ""},
		{"the second of three", "a- b c", "b", ""},
		{"the last of three", "a- b- c", "c", ""},
		{"the second of three, and the third is unhealthy", "a- b c?", "b", "(not healthy: c; being deleted: a)"},
		{"the unhealthy one is being deleted", "a b c?-", "a", ""},
		{"it is being deleted", "a- b c?", "a", ""},
		{"a healthy one of four during a rollout", "a b c d?", "a", ""},
		{"a healthy one of four, two are not", "a b c? d?", "a", "1 of the 3"},
		{"a healthy one of five, one is not", "a b c d e?", "a", ""},
		{"a healthy one of five, two are not", "a b c d? e?", "a", "2 of the 4 members that stay would be healthy, and 3 must be"},
		{"an unhealthy one of five", "a b c d? e?", "e", ""},
		{"nothing is known of any, as without a connection", "a? b? c?", "a", ""},
		{"it is no member", "a b?", "c", ""},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			got := refuse(tt.machine, parse(tt.members))
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
