package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"
)

// scripted is the response to a request for the Lease.
type scripted struct {
	holder string
	err    error
	write  bool
	// release is that the write releases the Lease.
	release bool
	// after is the time since the previous request.
	after time.Duration
}

// script is a Lease whose requests have given responses.
type script struct {
	resourcelock.Interface
	next scripted
}

func (s *script) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: s.next.holder}, nil, s.next.err
}

func (s *script) Update(context.Context, resourcelock.LeaderElectionRecord) error { return s.next.err }
func (s *script) Identity() string                                                { return "self" }
func (s *script) Describe() string                                                { return "ns/clusterctl-move" }

func TestCandidate(t *testing.T) {
	refused := errors.New("connection refused")
	explain := func(err error) string {
		return strings.ReplaceAll(err.Error(), "connection refused", "cannot reach https://source")
	}
	task := Task{Lease: "clusterctl-move", Does: "moves these objects", Cluster: "source cluster"}
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	forbidden := apierrors.NewForbidden(leases, "clusterctl-move", errors.New("no"))
	conflict := apierrors.NewConflict(leases, "clusterctl-move", errors.New("changed"))
	other := Holder{Host: "h", Processes: "p", PID: 7}.String()
	tests := []struct {
		reason   string
		requests []scripted
		said     []string
		gaveUp   string // empty: it did not
		elected  bool
	}{
		{reason: "A free Lease is acquired silently.", requests: []scripted{{}, {write: true}}, elected: true},
		{
			reason:   "A cluster that does not respond for less than a minute is waited for, and that is shown once.",
			requests: []scripted{{err: refused}, {err: refused, after: 59 * time.Second}, {after: time.Second}, {write: true}},
			said:     []string{"Cannot read Lease ns/clusterctl-move in the source cluster, trying again for up to 1m0s: cannot reach https://source"},
			elected:  true,
		},
		{
			reason:   "The minute begins again when the cluster has responded, also with a conflict.",
			requests: []scripted{{err: refused}, {write: true, err: conflict, after: 59 * time.Second}, {err: refused, after: time.Second}},
			said:     []string{"Cannot read Lease", "Cannot read Lease"},
		},
		{
			reason:   "After a minute, the error has the reason.",
			requests: []scripted{{err: refused}, {err: refused, after: time.Minute}},
			said:     []string{"Cannot read Lease"},
			gaveUp:   "cannot read Lease ns/clusterctl-move in the source cluster: connection refused",
		},
		{
			reason:   "A forbidden request is not repeated.",
			requests: []scripted{{write: true, err: forbidden}},
			said:     []string{"Cannot acquire Lease ns/clusterctl-move in the source cluster"},
			gaveUp:   "is forbidden: no",
		},
		{
			reason:   "Another process is waited for, and that is shown once.",
			requests: []scripted{{holder: other}, {holder: other, after: 4 * time.Minute}, {}, {write: true}},
			said:     []string{"Waiting for up to 5m0s for another clusterctl that moves these objects and has Lease ns/clusterctl-move: process 7 on h"},
			elected:  true,
		},
		{
			reason:   "After five minutes, the error has the process.",
			requests: []scripted{{holder: other}, {holder: other, after: 5 * time.Minute}},
			said:     []string{"process 7 on h"},
			gaveUp:   "another clusterctl moves these objects: process 7 on h has had Lease ns/clusterctl-move for 5m0s: run the same command again when it has finished",
		},
		{
			reason:   "When the Lease is held, leader election decides when it is lost.",
			requests: []scripted{{write: true}, {write: true, err: refused}, {write: true, err: refused, after: time.Hour}},
			said:     []string{"Cannot renew Lease ns/clusterctl-move in the source cluster, trying again for up to 10s"},
			elected:  true,
		},
		{
			reason: "A Lease that cannot be released expires.", elected: true, said: []string{"Cannot release Lease"},
			requests: []scripted{{write: true}, {write: true, release: true, err: refused}},
		},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			now := clocktesting.NewFakePassiveClock(time.Now())
			lease := &script{}
			var said []string
			ctx, giveUp := context.WithCancelCause(t.Context())
			defer giveUp(nil)
			c := &candidate{Interface: lease, task: task, explain: explain, clock: now, giveUp: giveUp, say: func(format string, args ...any) {
				said = append(said, fmt.Sprintf(format, args...))
			}}
			for _, lease.next = range tc.requests {
				now.SetTime(now.Now().Add(lease.next.after))
				if lease.next.write {
					_ = c.Update(ctx, resourcelock.LeaderElectionRecord{HolderIdentity: map[bool]string{false: "self"}[lease.next.release]})
				} else {
					_, _, _ = c.Get(ctx)
				}
			}
			if len(said) != len(tc.said) {
				t.Errorf("said %q, want %q", said, tc.said)
			}
			for i := range min(len(said), len(tc.said)) {
				if !strings.Contains(said[i], tc.said[i]) {
					t.Errorf("said %q, want %q", said[i], tc.said[i])
				}
			}
			cause := context.Cause(ctx)
			if (cause != nil) != (tc.gaveUp != "") || cause != nil && !strings.Contains(cause.Error(), tc.gaveUp) {
				t.Errorf("gave up with %v, want %q", cause, tc.gaveUp)
			}
			if c.elected() != tc.elected {
				t.Errorf("elected: %t, want %t", c.elected(), tc.elected)
			}
		})
	}
}
