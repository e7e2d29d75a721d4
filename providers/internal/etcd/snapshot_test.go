package etcd_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"sigs.k8s.io/cluster-api/providers/internal/etcd"
	"sigs.k8s.io/cluster-api/providers/internal/etcd/etcdtest"
)

func TestSnapshot(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 10000)
	sum := sha256.Sum256(content)
	tests := []struct {
		reason   string
		database etcdtest.Database
		prepare  func(*etcdtest.Etcd)
		wantErr  string
	}{
		{reason: "all chunks, and the checksum", database: etcdtest.Database{Content: content}},
		{reason: "a member without a leader or a quorum has a database", database: etcdtest.Database{Content: content},
			prepare: func(e *etcdtest.Etcd) { e.Lead(0); e.Stop("a"); e.Stop("c") }},
		{reason: "the stream breaks", database: etcdtest.Database{Content: content, BreakAfter: 2},
			wantErr: "reading the snapshot of the etcd member on Node b: rpc error: code = Unavailable desc = broken"},
		{reason: "a removed member does not respond", prepare: func(e *etcdtest.Etcd) { e.Remove("b") },
			wantErr: "reading the snapshot of the etcd member on Node b: rpc error: code = Unavailable desc = etcdserver: server stopped"},
		{reason: "a member that sends nothing", database: etcdtest.Database{Content: content, Stalled: make(chan struct{})},
			wantErr: "reading the snapshot of the etcd member on Node b: it sent nothing for 30s"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			e := etcdtest.New(t, clock.RealClock{}, "a", "b", "c")
			e.Keep(tt.database)
			if tt.prepare != nil {
				tt.prepare(e)
			}
			at := clocktesting.NewFakeClock(time.Now())
			c := etcd.New(etcd.Options{
				Dial: e.Dial, Clock: at,
				Identity: &etcd.Identity{
					Secrets: fake.NewClientBuilder().WithObjects(e.Secret(t, name)).Build(), Cluster: name, Clock: clock.RealClock{},
				},
			})
			t.Cleanup(c.Close)
			got, left, err := readAll(t, c, func() {
				if tt.database.Stalled != nil {
					<-tt.database.Stalled
					at.Step(etcd.SnapshotStall)
				}
			})
			if tt.wantErr != "" {
				if err == nil || !strings.HasSuffix(err.Error(), tt.wantErr) {
					t.Fatalf("got error %v, want %s", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := append(bytes.Clone(content), sum[:]...); !bytes.Equal(got, want) || left != 0 {
				t.Errorf("got %d bytes and %d to follow, want %d and 0", len(got), left, len(want))
			}
		})
	}
}

// readAll reads a snapshot of the member on Node b. It calls then after the first chunk.
func readAll(t *testing.T, c *etcd.Cluster, then func()) (all []byte, left uint64, err error) {
	t.Helper()
	s, err := c.Snapshot(t.Context(), "b")
	if err != nil {
		return nil, 0, err
	}
	defer s.Close()
	for first := true; ; first = false {
		chunk, remaining, err := s.Next()
		if errors.Is(err, io.EOF) {
			return all, left, nil
		}
		if err != nil {
			return nil, 0, err
		}
		all, left = append(all, chunk...), remaining
		if first {
			then()
		}
	}
}
