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

	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/etcd"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/etcd/etcdtest"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/quorum"
)

// withEtcd is a workload cluster with a small etcd.
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
		t.Fatalf("Etcd(): %v, want an answer for each Node, and an error for c", got)
	}
	got[2].Err = nil
	all := []string{"a", "b", "c"}
	want := []quorum.Member{
		{Node: "a", ClusterID: etcdtest.ClusterID, Name: "a", Members: all, Alarms: []string{"NOSPACE"}},
		{Node: "b", ClusterID: etcdtest.ClusterID, Name: "b", Leader: true, Members: all},
		{Node: "c"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Etcd(): -want +got:\n%s", diff)
	}
	before := e.Dials()
	c.Etcd(t.Context(), []string{"a"})
	c.Etcd(t.Context(), []string{"a", "b"})
	if e.Dials() != before+1 {
		t.Errorf("%d connections were made, want one: that to a was kept, that to b was not while nobody asked b", e.Dials()-before)
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
		"Leads":     {reason: "The leader hands over.", from: "a", to: "c", want: 3},
		"DoesNot":   {reason: "Who does not lead has nothing to hand over, and need not answer.", from: "b", to: "c", stop: "b", want: 1},
		"Same":      {reason: "Who is to lead leads already.", from: "b", to: "a", want: 1},
		"NewIsAway": {reason: "A member that is away cannot lead.", from: "a", to: "c", stop: "c", want: 1, wantErr: "on Node c"},
		"OldIsAway": {reason: "Others cannot depose a leader.", from: "a", to: "c", stop: "a", want: 1, wantErr: "on Node a"},
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
				t.Errorf("%s\nmember %d leads, want %d", tc.reason, e.Leader(), tc.want)
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
		"Well":          {reason: "One of three may go.", nodes: "a b c", name: "c", via: "a b", want: "a b"},
		"Gone":          {reason: "Who is gone need not go.", nodes: "a b c", name: "x", via: "a b", want: "a b c"},
		"Dead":          {reason: "A dead member goes when the others have a quorum.", nodes: "a b c", stop: "c", name: "c", via: "a b", want: "a b"},
		"DeadByAnother": {reason: "Who does not answer is passed over.", nodes: "a b c d e", stop: "a", name: "e", via: "a b c d", want: "a b c d"},
		"NoQuorum": {
			reason: "Two are left, of which both are needed.", nodes: "a b c", stop: "b", name: "c", via: "a b", want: "a b c",
			wantErr: "etcd member c cannot be removed: of the others 2 must be healthy, but only 1 are",
		},
		"Last": {
			reason: "The last member stays.", nodes: "a", name: "a", via: "a", want: "a",
			wantErr: "of the others 1 must be healthy, but only 0 are",
		},
		"CountedOnce": {
			reason: "A member that is named twice counts once.", nodes: "a b c", stop: "b", name: "c", via: "a a", want: "a b c",
			wantErr: "only 1 are",
		},
		"Learner": {reason: "A learner has no vote, so its removal costs none.", nodes: "a b c d", stop: "b", learner: "d", name: "d", via: "a", want: "a b c"},
		"LearnersDoNotCount": {
			reason: "A learner does not keep the quorum.", nodes: "a b c d", stop: "b", learner: "d", name: "c", via: "a d", want: "a b c d",
			wantErr: "of the others 2 must be healthy, but only 1 are",
		},
		"NobodyAsked": {reason: "Somebody must be asked.", nodes: "a b c", name: "c", want: "a b c", wantErr: "there is no etcd member that could be asked"},
		"NoName":      {reason: "Members that have not started are not told apart by their name.", nodes: "a b c", via: "a b", want: "a b c", wantErr: "without a name"},
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
			for range 2 { // Once more, as after an interruption.
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

// The etcd of Cluster API v1.7's in-memory provider answers without saying who answers. An upgrade moves leadership and
// removes the old member all the same, and only while the others are enough.
func TestAnUpgradeWithAnonymousMembers(t *testing.T) {
	c, e := withEtcd(t, "a", "b", "c")
	e.Anonymous()
	got := c.Etcd(t.Context(), []string{"a", "b", "c"})
	all := []string{"a", "b", "c"}
	want := []quorum.Member{
		{Node: "a", Name: "a", Leader: true, Members: all}, {Node: "b", Name: "b", Members: all}, {Node: "c", Name: "c", Members: all},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Etcd(): -want +got:\n%s", diff)
	}
	if err := c.MoveEtcdLeadership(t.Context(), "a", "c"); err != nil || e.Leader() != 3 {
		t.Errorf("member %d leads, error %v, want 3", e.Leader(), err)
	}
	if err := c.RemoveEtcdMember(t.Context(), "a", []string{"b", "c"}); err != nil {
		t.Errorf("RemoveEtcdMember(): %v", err)
	}
	if got := e.Names(); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("members are %v, want b and c", got)
	}
	e.Stop("c")
	if err := c.RemoveEtcdMember(t.Context(), "b", []string{"c"}); err == nil {
		t.Error("the last member that answers was removed")
	}
}

// A member that is silent must not use up the time of those that answer.
func TestASilentMemberHoldsUpNobody(t *testing.T) {
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
			t.Errorf("RemoveEtcdMember(): %v, want that nobody answers", err)
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
		"None":     {reason: "Whoever has started stays.", nodes: "a b", want: []string{"a", "b"}},
		"Learner":  {reason: "One that has no vote goes whatever the others are.", nodes: "a b c", stop: "b", added: 1, learner: true, want: []string{"a", "b", "c"}},
		"Voters":   {reason: "Those with a vote go when the others have a quorum.", nodes: "a b c", added: 2, want: []string{"a", "b", "c"}},
		"NoQuorum": {reason: "etcd without a quorum removes nobody.", nodes: "a b", stop: "b", added: 1, want: []string{"", "a", "b"}, wantErr: "no leader"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, e := withEtcd(t, strings.Fields(tc.nodes)...)
			e.Add(tc.added, tc.learner)
			if tc.stop != "" {
				e.Stop(tc.stop)
			}
			for range 2 { // Once more, as after an interruption.
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
