package member

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/cluster-api/providers/internal/etcd"
)

func TestChoose(t *testing.T) {
	all := []etcd.Member{{ID: 1, Name: "a"}, {ID: 2, Name: "b"}, {ID: 3, Name: "c", IsLearner: true}}
	of := func(node string, id, index uint64, alarms ...string) Member {
		return Member{Node: node, View: etcd.View{ID: id, LeaderID: 1, Members: all, RaftIndex: index, Alarms: alarms}}
	}
	down := errors.New("connection refused")
	tests := []struct {
		reason string
		views  []Member
		errs   []error
		want   string
		err    string
	}{
		{reason: "a follower, not the leader", views: []Member{of("a", 1, 5000), of("b", 2, 4500)}, want: "b"},
		{reason: "a follower that lags behind has an older snapshot", views: []Member{of("a", 1, 5000), of("b", 2, 3000)}, want: "a"},
		{reason: "the leader if it is alone", views: []Member{of("a", 1, 5000)}, want: "a"},
		{reason: "the leader if no follower responds", views: []Member{of("a", 1, 5000), {Node: "b"}}, errs: []error{nil, down}, want: "a"},
		{reason: "a learner has an incomplete database", views: []Member{of("c", 3, 5000)}, err: "the etcd member on Node c does not vote yet"},
		{reason: "a member that is not in its own list was removed", views: []Member{of("d", 4, 5000)}, err: "the etcd member on Node d does not vote yet"},
		{reason: "a corrupt database is not backed up", views: []Member{of("a", 1, 5000), of("b", 2, 5000, "CORRUPT")}, want: "a"},
		{reason: "one without space is", views: []Member{of("a", 1, 5000), of("b", 2, 5000, "NOSPACE")}, want: "b"},
		{reason: "none responds", views: []Member{{Node: "a"}}, errs: []error{down}, err: "no etcd member can be backed up: connection refused"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			errs := append(tt.errs, make([]error, len(tt.views)-len(tt.errs))...)
			got, err := choose(tt.views, errs)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil || got.Node != tt.want {
				t.Errorf("got %q, %v, want %s", got.Node, err, tt.want)
			}
		})
	}
}
