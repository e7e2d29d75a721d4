package etcd_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"sigs.k8s.io/cluster-api/providers/internal/etcd"
	"sigs.k8s.io/cluster-api/providers/internal/etcd/etcdtest"
)

var name = types.NamespacedName{Namespace: "default", Name: "c"}

// connect returns a client of an Etcd.
func connect(t *testing.T, e *etcdtest.Etcd, dial func(context.Context, string) (net.Conn, error)) *etcd.Cluster {
	t.Helper()
	secrets := fake.NewClientBuilder().WithObjects(e.Secret(t, name)).Build()
	c := etcd.New(etcd.Options{
		Dial:     dial,
		Identity: &etcd.Identity{Secrets: secrets, Cluster: name, Clock: clock.RealClock{}},
	})
	t.Cleanup(c.Close)
	return c
}

func members(nodes ...string) []etcd.Member {
	var all []etcd.Member
	for i, node := range nodes {
		all = append(all, etcd.Member{
			ID: uint64(i) + 1, Name: node,
			PeerURLs: []string{"https://" + node + ":2380"}, ClientURLs: []string{"https://" + node + ":2379"},
		})
	}
	return all
}

func TestView(t *testing.T) {
	all := members("a", "b")
	tests := map[string]struct {
		reason  string
		prepare func(*etcdtest.Etcd)
		want    etcd.View
		wantErr string
	}{
		"Well": {
			reason:  "The response has the IDs of the member and the leader, and the members sorted by ID.",
			prepare: func(*etcdtest.Etcd) {},
			want:    etcd.View{ID: 2, ClusterID: etcdtest.ClusterID, LeaderID: 1, Version: etcdtest.Version, Members: all},
		},
		"Alarm": {
			reason:  "The response has the alarms of the member.",
			prepare: func(e *etcdtest.Etcd) { e.Set("b", false, etcdserverpb.AlarmType_NOSPACE) },
			want:    etcd.View{ID: 2, ClusterID: etcdtest.ClusterID, LeaderID: 1, Version: etcdtest.Version, Members: all, Alarms: []string{"NOSPACE"}},
		},
		"AlarmOfAnother": {
			reason:  "Alarms of other members are not in the response.",
			prepare: func(e *etcdtest.Etcd) { e.Set("a", false, etcdserverpb.AlarmType_CORRUPT) },
			want:    etcd.View{ID: 2, ClusterID: etcdtest.ClusterID, LeaderID: 1, Version: etcdtest.Version, Members: all},
		},
		"NoLeader": {
			reason:  "A member without a leader is unhealthy.",
			prepare: func(e *etcdtest.Etcd) { e.Lead(0) },
			wantErr: "querying the etcd member on Node b: it has no leader",
		},
		"Anonymous": {
			reason:  "If the response has no header, the ID is found by the name of the Node.",
			prepare: func(e *etcdtest.Etcd) { e.Anonymous() },
			want:    etcd.View{ID: 2, LeaderID: 1, Version: etcdtest.Version, Members: all},
		},
		"AnonymousAlarm": {
			reason:  "The alarms are found by that ID, too.",
			prepare: func(e *etcdtest.Etcd) { e.Anonymous(); e.Set("b", false, etcdserverpb.AlarmType_NOSPACE) },
			want:    etcd.View{ID: 2, LeaderID: 1, Version: etcdtest.Version, Members: all, Alarms: []string{"NOSPACE"}},
		},
		"Removed": {
			reason:  "A removed member does not respond.",
			prepare: func(e *etcdtest.Etcd) { e.Remove("b") },
			wantErr: "querying the etcd member on Node b: rpc error: code = Unavailable desc = etcdserver: server stopped",
		},
		"Countless": {
			reason:  "The number of members is limited.",
			prepare: func(e *etcdtest.Etcd) { e.Lie(slices.Repeat([]*etcdserverpb.Member{{ID: 9}}, 101)...) },
			wantErr: "querying the etcd member on Node b: it has 103 members, more than 100",
		},
		"Rubbish": {
			reason:  "An invalid name is an error that does not contain it.",
			prepare: func(e *etcdtest.Etcd) { e.Lie(&etcdserverpb.Member{ID: 255, Name: strings.Repeat("a", 300)}) },
			wantErr: "querying the etcd member on Node b: it has member ff, whose name is not a valid name of a Node",
		},
		"Huge": {
			reason: "The size of responses is limited.",
			prepare: func(e *etcdtest.Etcd) {
				e.Lie(&etcdserverpb.Member{ID: 9, PeerURLs: []string{strings.Repeat("a", 2<<20)}})
			},
			wantErr: "querying the etcd member on Node b: rpc error: code = ResourceExhausted",
		},
		"Away": {
			reason:  "An unresponsive member is an error.",
			prepare: func(e *etcdtest.Etcd) { e.Stop("b") },
			wantErr: "querying the etcd member on Node b: ",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := etcdtest.New(t, clock.RealClock{}, "a", "b")
			tc.prepare(e)
			got, err := connect(t, e, e.Dial).View(t.Context(), "b")
			if (err == nil) != (tc.wantErr == "") || (err != nil && !strings.HasPrefix(err.Error(), tc.wantErr)) {
				t.Fatalf("%s\nView(): error %v, want %q", tc.reason, err, tc.wantErr)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nView(): -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	e := etcdtest.New(t, clock.RealClock{}, "a", "b", "c")
	c, ctx := connect(t, e, e.Dial), t.Context()
	for range 2 { // The second time it is no longer the leader.
		if err := c.MoveLeader(ctx, "a", 3); err != nil {
			t.Fatal(err)
		}
	}
	if e.Leader() != 3 {
		t.Errorf("leader %d, want 3", e.Leader())
	}
	for range 2 { // The second time it no longer exists.
		if err := c.RemoveMember(ctx, "c", 1); err != nil {
			t.Fatal(err)
		}
	}
	got, err := c.Members(ctx, "b")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(members("a", "b", "c")[1:], got); diff != "" {
		t.Errorf("Members(): -want +got:\n%s", diff)
	}
}

// A previous leader must not change etcd: the new one may be removing another member.
func TestFormerLeader(t *testing.T) {
	e := etcdtest.New(t, clock.RealClock{}, "a", "b", "c")
	lost := errors.New("no longer the leader")
	c := etcd.New(etcd.Options{
		Dial:        e.Dial,
		Identity:    &etcd.Identity{Secrets: fake.NewClientBuilder().WithObjects(e.Secret(t, name)).Build(), Cluster: name, Clock: clock.RealClock{}},
		CheckLeader: func() error { return lost },
	})
	defer c.Close()
	if err := c.RemoveMember(t.Context(), "a", 3); !errors.Is(err, lost) {
		t.Errorf("removing a member: %v", err)
	}
	if err := c.MoveLeader(t.Context(), "a", 2); !errors.Is(err, lost) {
		t.Errorf("moving the leadership: %v", err)
	}
	view, err := c.View(t.Context(), "a")
	if err != nil || len(view.Members) != 3 || view.LeaderID != 1 {
		t.Errorf("members and leader must be the same: %+v, %v", view, err)
	}
}

func TestConnectionIsKept(t *testing.T) {
	e := etcdtest.New(t, clock.RealClock{}, "a", "b")
	c := connect(t, e, e.Dial)
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() {
			if _, err := c.View(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	if e.Dials() != 1 {
		t.Errorf("%d connections for 20 concurrent calls, want 1", e.Dials())
	}
	if diff := cmp.Diff([]string{"cluster-api.x-k8s.io"}, e.Clients()); diff != "" {
		t.Errorf("names of clients: -want +got:\n%s", diff)
	}
}

func TestReconnect(t *testing.T) {
	e := etcdtest.New(t, clock.RealClock{}, "a")
	c := connect(t, e, e.Dial)
	if _, err := c.View(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	e.Stop("a")
	if _, err := c.View(t.Context(), "a"); err == nil {
		t.Fatal("a stopped member has responded")
	}
	after := e.Dials()
	e.Restart(t, "a")
	if _, err := c.View(t.Context(), "a"); err != nil {
		t.Errorf("after the restart of the member: %v", err)
	}
	if e.Dials() != after+1 {
		t.Errorf("%d connections after the restart, want 1", e.Dials()-after)
	}
}

// observed is a connection that reports when it is closed.
type observed struct {
	net.Conn
	once  sync.Once
	ended chan struct{}
}

func (o *observed) Close() error {
	o.once.Do(func() { close(o.ended) })
	return o.Conn.Close()
}

func TestConnectionsAreClosed(t *testing.T) {
	tests := map[string]struct {
		reason string
		end    func(*etcd.Cluster)
		ends   string
		stays  bool
	}{
		"Keep":  {reason: "Keep closes connections to all other Nodes.", end: func(c *etcd.Cluster) { c.Keep([]string{"b"}) }, ends: "a", stays: true},
		"Close": {reason: "There are no calls after Close.", end: func(c *etcd.Cluster) { c.Close() }, ends: "b"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := etcdtest.New(t, clock.RealClock{}, "a", "b")
			made := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{})}
			c := connect(t, e, func(ctx context.Context, node string) (net.Conn, error) {
				conn, err := e.Dial(ctx, node)
				return &observed{Conn: conn, ended: made[node]}, err
			})
			for node := range made {
				if _, err := c.View(t.Context(), node); err != nil {
					t.Fatal(err)
				}
			}
			tc.end(c)
			<-made[tc.ends]
			if _, err := c.View(t.Context(), "b"); (err == nil) != tc.stays {
				t.Errorf("%s\nView(b): %v", tc.reason, err)
			}
		})
	}
}

func TestUnresponsiveMember(t *testing.T) {
	e := etcdtest.New(t, clock.RealClock{}, "a")
	var begun atomic.Bool // It may not start in time.
	dialed := make(chan struct{}, 1)
	c := etcd.New(etcd.Options{
		Identity:    &etcd.Identity{Secrets: fake.NewClientBuilder().WithObjects(e.Secret(t, name)).Build(), Cluster: name, Clock: clock.RealClock{}},
		DialTimeout: time.Minute, CallTimeout: 20 * time.Millisecond,
		Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			begun.Store(true)
			<-ctx.Done() // It does not respond.
			dialed <- struct{}{}
			return nil, ctx.Err()
		},
	})
	defer c.Close()
	_, err := c.View(t.Context(), "a")
	if err == nil || !strings.Contains(err.Error(), "DeadlineExceeded") {
		t.Errorf("View(): %v, want a timeout", err)
	}
	if begun.Load() {
		<-dialed // Nothing continues in the background.
	}
}

// cut is a connection that can lose everything that is sent, without an error.
type cut struct {
	net.Conn
	off *atomic.Bool
}

func (c *cut) Write(p []byte) (int, error) {
	if c.off.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func TestLostConnection(t *testing.T) {
	e := etcdtest.New(t, clock.RealClock{}, "a")
	var first *atomic.Bool
	c := etcd.New(etcd.Options{
		Identity:    &etcd.Identity{Secrets: fake.NewClientBuilder().WithObjects(e.Secret(t, name)).Build(), Cluster: name, Clock: clock.RealClock{}},
		CallTimeout: 6 * time.Second,
		Dial: func(ctx context.Context, node string) (net.Conn, error) {
			conn, err := e.Dial(ctx, node)
			off := &atomic.Bool{}
			if first == nil {
				first = off
			}
			return &cut{Conn: conn, off: off}, err
		},
	})
	defer c.Close()
	if _, err := c.View(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	first.Store(true)
	if _, err := c.View(t.Context(), "a"); err != nil {
		t.Errorf("a lost connection is reported as an error of the member: %v", err)
	}
	if e.Dials() != 2 {
		t.Errorf("%d connections, want 2", e.Dials())
	}
}

// gRPC dials on its own goroutine, where a panic would end the process.
func TestDialPanic(t *testing.T) {
	e := etcdtest.New(t, clock.RealClock{}, "a")
	c := connect(t, e, func(context.Context, string) (net.Conn, error) { panic("rubbish") })
	_, err := c.View(t.Context(), "a")
	if err == nil || !strings.Contains(err.Error(), "connecting to an etcd member panicked: string") {
		t.Errorf("View(): %v, want the reason", err)
	}
}

// The handshake runs there, too.
func TestHandshakePanic(t *testing.T) {
	e := etcdtest.New(t, clock.RealClock{}, "a")
	c := etcd.New(etcd.Options{Dial: e.Dial, Identity: &etcd.Identity{Cluster: name, Clock: clock.RealClock{}}}) // no reader of Secrets: nil
	defer c.Close()
	_, err := c.View(t.Context(), "a")
	if err == nil || !strings.Contains(err.Error(), "verifying the member's certificate panicked") {
		t.Errorf("View(): %v, want the reason", err)
	}
}

func TestDialError(t *testing.T) {
	e := etcdtest.New(t, clock.RealClock{}, "a")
	c := connect(t, e, func(context.Context, string) (net.Conn, error) { return nil, errors.New("the Pod does not exist") })
	_, err := c.View(t.Context(), "a")
	if err == nil || !strings.Contains(err.Error(), "the Pod does not exist") {
		t.Errorf("View(): %v, want the reason", err)
	}
}
