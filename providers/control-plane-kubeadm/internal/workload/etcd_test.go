package workload

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"sigs.k8s.io/cluster-api/providers/internal/etcd"
	"sigs.k8s.io/cluster-api/providers/internal/etcd/etcdtest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/quorum"
)

// withEtcd returns a workload cluster with an Etcd.
func withEtcd(t *testing.T, nodes ...string) (*Cluster, *etcdtest.Etcd) {
	t.Helper()
	e := etcdtest.New(t, clock.RealClock{}, nodes...)
	secrets := fake.NewClientBuilder().WithObjects(e.Secret(t, key)).Build()
	c := &Cluster{etcd: etcd.New(etcd.Options{
		Dial: e.Dial, Identity: &etcd.Identity{Secrets: secrets, Cluster: key, Clock: clock.RealClock{}},
	})}
	t.Cleanup(c.etcd.Close)
	return c, e
}

func TestEtcd(t *testing.T) {
	c, e := withEtcd(t, "b", "a", "c")
	e.Set("a", false, etcdserverpb.AlarmType_NOSPACE)
	e.Stop("c")
	got := c.Etcd(t.Context(), []string{"a", "b", "c"})
	if len(got) != 3 || got[2].Err == nil {
		t.Fatalf("Etcd(): %v, want a response for each Node, and an error for c", got)
	}
	got[2].Err = nil
	all := []string{"a", "b", "c"}
	want := []quorum.Member{
		{Node: "a", ClusterID: etcdtest.ClusterID, Name: "a", Version: etcdtest.Version, Members: all, Alarms: []string{"NOSPACE"}},
		{Node: "b", ClusterID: etcdtest.ClusterID, Name: "b", Leader: true, Version: etcdtest.Version, Members: all},
		{Node: "c"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Etcd(): -want +got:\n%s", diff)
	}
	before := e.Dials()
	c.Etcd(t.Context(), []string{"a"})
	c.Etcd(t.Context(), []string{"a", "b"})
	if e.Dials() != before+1 {
		t.Errorf("%d connections, want one: to b, which was not queried for a while", e.Dials()-before)
	}
}

func TestMoveEtcdLeadership(t *testing.T) {
	tests := map[string]struct {
		reason   string
		from, to string
		stop     string
		want     uint64
		wantErr  string
	}{
		"Leads":     {reason: "The leadership moves.", from: "a", to: "c", want: 3},
		"DoesNot":   {reason: "A member that is not the leader is not called.", from: "b", to: "c", stop: "b", want: 1},
		"Same":      {reason: "The member is already the leader.", from: "b", to: "a", want: 1},
		"NewIsAway": {reason: "An unresponsive member cannot become the leader.", from: "a", to: "c", stop: "c", want: 1, wantErr: "on Node c"},
		"OldIsAway": {reason: "An unresponsive leader cannot move the leadership.", from: "a", to: "c", stop: "a", want: 1, wantErr: "on Node a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, e := withEtcd(t, "a", "b", "c")
			if tc.stop != "" {
				e.Stop(tc.stop)
			}
			err := c.MoveEtcdLeadership(t.Context(), tc.from, tc.to)
			if (err == nil) != (tc.wantErr == "") || (err != nil && !strings.Contains(err.Error(), tc.wantErr)) {
				t.Errorf("%s\nMoveEtcdLeadership(): %v, want %q", tc.reason, err, tc.wantErr)
			}
			if e.Leader() != tc.want {
				t.Errorf("%s\nleader %d, want %d", tc.reason, e.Leader(), tc.want)
			}
		})
	}
}

func TestRemoveEtcdMember(t *testing.T) {
	tests := map[string]struct {
		reason  string
		nodes   string
		stop    string
		learner string
		name    string
		via     string
		want    string
		wantErr string
	}{
		"Healthy":       {reason: "One of three can be removed.", nodes: "a b c", name: "c", via: "a b", want: "a b"},
		"Gone":          {reason: "The member does not exist.", nodes: "a b c", name: "x", via: "a b", want: "a b c"},
		"Dead":          {reason: "An unresponsive member is removed if the others have a quorum.", nodes: "a b c", stop: "c", name: "c", via: "a b", want: "a b"},
		"DeadByAnother": {reason: "Unresponsive members do not prevent the removal.", nodes: "a b c d e", stop: "a", name: "e", via: "a b c d", want: "a b c d"},
		"NoQuorum": {
			reason: "The others have no quorum.", nodes: "a b c", stop: "b", name: "c", via: "a b", want: "a b c",
			wantErr: "cannot remove etcd member c: 2 of the others must be healthy (found 1)",
		},
		"Last": {
			reason: "The last member is not removed.", nodes: "a", name: "a", via: "a", want: "a",
			wantErr: "1 of the others must be healthy (found 0)",
		},
		"CountedOnce": {
			reason: "A member counts once.", nodes: "a b c", stop: "b", name: "c", via: "a a", want: "a b c",
			wantErr: "found 1",
		},
		"Learner": {reason: "Learners do not count for the quorum.", nodes: "a b c d", stop: "b", learner: "d", name: "d", via: "a", want: "a b c"},
		"LearnersDoNotCount": {
			reason: "A healthy learner does not count.", nodes: "a b c d", stop: "b", learner: "d", name: "c", via: "a d", want: "a b c d",
			wantErr: "2 of the others must be healthy (found 1)",
		},
		"NoHealthy": {reason: "A healthy member is required.", nodes: "a b c", name: "c", want: "a b c", wantErr: "there is no healthy etcd member"},
		"NoName":    {reason: "The name is required.", nodes: "a b c", via: "a b", want: "a b c", wantErr: "is required"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, e := withEtcd(t, strings.Fields(tc.nodes)...)
			if tc.learner != "" {
				e.Set(tc.learner, true, etcdserverpb.AlarmType_NONE)
			}
			if tc.stop != "" {
				e.Stop(tc.stop)
			}
			for range 2 { // Twice, as after an interruption.
				err := c.RemoveEtcdMember(t.Context(), tc.name, strings.Fields(tc.via))
				if (err == nil) != (tc.wantErr == "") || (err != nil && !strings.Contains(err.Error(), tc.wantErr)) {
					t.Errorf("%s\nRemoveEtcdMember(): %v, want %q", tc.reason, err, tc.wantErr)
				}
			}
			if got := e.Names(); !slices.Equal(got, strings.Fields(tc.want)) {
				t.Errorf("%s\nmembers are %v, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// The in-memory provider of Cluster API v1.7 responds without headers. Upgrades must work with it.
func TestAnUpgradeWithAnonymousMembers(t *testing.T) {
	c, e := withEtcd(t, "a", "b", "c")
	e.Anonymous()
	got := c.Etcd(t.Context(), []string{"a", "b", "c"})
	all := []string{"a", "b", "c"}
	want := []quorum.Member{
		{Node: "a", Name: "a", Leader: true, Version: etcdtest.Version, Members: all}, {Node: "b", Name: "b", Version: etcdtest.Version, Members: all},
		{Node: "c", Name: "c", Version: etcdtest.Version, Members: all},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Etcd(): -want +got:\n%s", diff)
	}
	if err := c.MoveEtcdLeadership(t.Context(), "a", "c"); err != nil || e.Leader() != 3 {
		t.Errorf("leader %d, error %v, want 3", e.Leader(), err)
	}
	if err := c.RemoveEtcdMember(t.Context(), "a", []string{"b", "c"}); err != nil {
		t.Errorf("RemoveEtcdMember(): %v", err)
	}
	if got := e.Names(); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("members are %v, want b and c", got)
	}
	e.Stop("c")
	if err := c.RemoveEtcdMember(t.Context(), "b", []string{"c"}); err == nil {
		t.Error("the last healthy member was removed")
	}
}

// An unresponsive member must not use up the time of the others.
func TestUnresponsiveMembersCauseNoDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := etcd.New(etcd.Options{
			Identity: &etcd.Identity{Secrets: fake.NewClientBuilder().Build(), Cluster: key, Clock: clock.RealClock{}},
			Dial: func(ctx context.Context, node string) (net.Conn, error) {
				if node == "c" {
					return nil, errors.New("refused")
				}
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})
		defer silent.Close()
		c, begun := &Cluster{etcd: silent}, time.Now()
		err := c.RemoveEtcdMember(t.Context(), "x", []string{"a", "b", "c"})
		if err == nil {
			t.Errorf("RemoveEtcdMember(): %v, want a timeout", err)
		}
		if took := time.Since(begun); took > etcd.DefaultCallTimeout {
			t.Errorf("it took %s, want the time of one call", took)
		}
	})
}

func TestRemoveUnstartedEtcdMembers(t *testing.T) {
	tests := map[string]struct {
		reason  string
		nodes   string
		stop    string
		added   int
		learner bool
		want    []string
		wantErr string
	}{
		"None":     {reason: "Members that have started are not removed.", nodes: "a b", want: []string{"a", "b"}},
		"Learner":  {reason: "Learners can always be removed.", nodes: "a b c", stop: "b", added: 1, learner: true, want: []string{"a", "b", "c"}},
		"Voters":   {reason: "Voters are removed if the others have a quorum.", nodes: "a b c", added: 2, want: []string{"a", "b", "c"}},
		"NoQuorum": {reason: "Without a quorum no member can be removed.", nodes: "a b", stop: "b", added: 1, want: []string{"", "a", "b"}, wantErr: "no leader"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, e := withEtcd(t, strings.Fields(tc.nodes)...)
			e.Add(tc.added, tc.learner)
			if tc.stop != "" {
				e.Stop(tc.stop)
			}
			for range 2 { // Twice, as after an interruption.
				err := c.RemoveUnstartedEtcdMembers(t.Context(), strings.Fields(tc.nodes))
				if (err == nil) != (tc.wantErr == "") || (err != nil && !strings.Contains(err.Error(), tc.wantErr)) {
					t.Errorf("%s\nRemoveUnstartedEtcdMembers(): %v, want %q", tc.reason, err, tc.wantErr)
				}
			}
			if got := e.Names(); !slices.Equal(got, tc.want) {
				t.Errorf("%s\nmembers are %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
