package apiserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd"
)

// readSnapshot reads a snapshot, and checks its chunks.
func readSnapshot(ctx context.Context, t *testing.T, client *clientv3.Client) ([]byte, error) {
	t.Helper()
	receiver, err := etcdserverpb.NewMaintenanceClient(client.ActiveConnection()).Snapshot(ctx, &etcdserverpb.SnapshotRequest{})
	if err != nil {
		return nil, err
	}
	var all []byte
	remaining := uint64(0)
	for {
		message, err := receiver.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		if len(all) > 0 && message.RemainingBytes > 0 && message.RemainingBytes != remaining-uint64(len(message.Blob)) {
			t.Errorf("%d bytes remain after %d of %d", message.RemainingBytes, len(message.Blob), remaining)
		}
		if len(message.Blob) > 32<<10 {
			t.Errorf("a message has %d bytes", len(message.Blob))
		}
		remaining = message.RemainingBytes
		all = append(all, message.Blob...)
	}
}

// intact reports whether a snapshot ends with its hash.
func intact(content []byte) bool {
	if len(content)%512 != sha256.Size {
		return false
	}
	end := len(content) - sha256.Size
	sum := sha256.Sum256(content[:end])
	return bytes.Equal(sum[:], content[end:])
}

func addConfigMaps(t *testing.T, c *testCluster, n int) {
	t.Helper()
	for i := range n {
		_, err := store.Ensure(c.group, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("cm-%d", i)},
			Data:       map[string]string{"key": strings.Repeat("x", 500)},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestSnapshot(t *testing.T) {
	c := newTestCluster(t)
	joinMembers(t, c, 3)
	addConfigMaps(t, c, 500)
	client := c.etcdClient(t, c.endpoint.Address(), "cp-0")
	content, err := readSnapshot(t.Context(), t, client)
	if err != nil || !intact(content) {
		t.Fatalf("a snapshot of %d bytes: %v", len(content), err)
	}
	before, err := client.Status(t.Context(), "etcd-cp-0")
	if err != nil {
		t.Fatal(err)
	}
	if size := int64(len(content)); before.DbSize < size/2 || before.DbSize > 2*size {
		t.Errorf("the status says %d bytes, the snapshot has %d", before.DbSize, size)
	}
	path := filepath.Join(t.TempDir(), "snapshot.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := snapshot.NewV3(zap.NewNop()).Status(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.Revision != before.Header.Revision || got.Version != before.StorageVersion || got.TotalKey < 500 {
		t.Errorf("etcdutl reports %+v, etcd reported revision %d and storage version %s", got, before.Header.Revision, before.StorageVersion)
	}
}

// TestSnapshotsFailAsWithEtcd has the states of a member in which a snapshot succeeds or fails.
func TestSnapshotsFailAsWithEtcd(t *testing.T) {
	for _, test := range []struct {
		reason string
		faults faults.Faults
		do     func(*testing.T, *testCluster)
		code   codes.Code
		intact bool
	}{
		{reason: "all members are alive", code: codes.OK, intact: true},
		{reason: "a snapshot needs no quorum", faults: faults.Faults{DeadMachines: []string{"cp-1", "cp-2"}}, code: codes.OK, intact: true},
		{reason: "requests that are late", faults: faults.Faults{Latency: metav1.Duration{Duration: time.Millisecond}}, code: codes.OK, intact: true},
		{reason: "requests that fail", faults: faults.Faults{ErrorRate: 1}, code: codes.Unavailable},
		{reason: "a stream that breaks", faults: faults.Faults{Snapshot: faults.SnapshotInterrupted}, code: codes.Unavailable},
		{reason: "a wrong hash", faults: faults.Faults{Snapshot: faults.SnapshotCorrupt}, code: codes.OK},
		{reason: "an emulated old etcd", faults: faults.Faults{Emulate: faults.EmulateV17}, code: codes.Unimplemented},
		{reason: "a removed member", code: codes.Unavailable, do: func(t *testing.T, c *testCluster) {
			all, err := etcd.Clusters(c.group)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range all[0].Members {
				if m.Machine.Name == "cp-0" {
					if err := etcd.Remove(c.group, all[0].ID, m.ID); err != nil {
						t.Fatal(err)
					}
				}
			}
		}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			c := newTestCluster(t)
			joinMembers(t, c, 3)
			client := c.etcdClient(t, c.endpoint.Address(), "cp-0")
			if _, err := client.Status(t.Context(), "etcd-cp-0"); err != nil {
				t.Fatal(err)
			}
			if test.do != nil {
				test.do(t, c)
			}
			if err := c.group.SetFaults(test.faults); err != nil {
				t.Fatal(err)
			}
			content, err := readSnapshot(t.Context(), t, client)
			if status.Code(err) != test.code || intact(content) != test.intact {
				t.Errorf("%d bytes, intact = %v, %v; want %s", len(content), intact(content), err, test.code)
			}
			if test.faults.Snapshot == faults.SnapshotInterrupted && len(content) == 0 {
				t.Error("the stream must break in the middle")
			}
		})
	}
}

func TestSnapshotOfAMachineWithoutPower(t *testing.T) {
	c := newTestCluster(t)
	joinMembers(t, c, 3)
	c.endpoint.StartServer("cp-1", "v1.31.2")
	client := c.etcdClient(t, c.endpoint.Address(), "cp-0")
	if _, err := client.Status(t.Context(), "etcd-cp-0"); err != nil {
		t.Fatal(err)
	}
	if err := c.group.SetFaults(faults.Faults{DeadMachines: []string{"cp-0"}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if content, err := readSnapshot(ctx, t, client); err == nil {
		t.Errorf("a machine without power sent a snapshot of %d bytes", len(content))
	}
}

func TestHashKV(t *testing.T) {
	c := newTestCluster(t)
	joinMembers(t, c, 2)
	clients := []*clientv3.Client{c.etcdClient(t, c.endpoint.Address(), "cp-0"), c.etcdClient(t, c.endpoint.Address(), "cp-1")}
	hash := func(i int, revision int64) *clientv3.HashKVResponse {
		t.Helper()
		got, err := clients[i].HashKV(t.Context(), "", revision)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := hash(0, 0)
	addConfigMaps(t, c, 1)
	for _, test := range []struct {
		reason   string
		revision int64
		same     bool
		fails    string
	}{
		{reason: "the hash is of the latest revision"},
		{reason: "the hash of an earlier revision does not change", revision: first.HashRevision, same: true},
		{reason: "revisions of the future have no hash", revision: first.HashRevision + 1000, fails: "future revision"},
		{reason: "revisions before the compaction have no hash", revision: first.CompactRevision - 1, fails: "compacted"},
	} {
		if test.fails != "" {
			if _, err := clients[0].HashKV(t.Context(), "", test.revision); err == nil || !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%s: %v", test.reason, err)
			}
			continue
		}
		one, other := hash(0, test.revision), hash(1, test.revision)
		if one.Hash != other.Hash || (one.Hash == first.Hash) != test.same {
			t.Errorf("%s: members have %d and %d, it was %d", test.reason, one.Hash, other.Hash, first.Hash)
		}
	}
	maintenance := etcdserverpb.NewMaintenanceClient(clients[0].ActiveConnection())
	whole, err := maintenance.Hash(t.Context(), &etcdserverpb.HashRequest{})
	if err != nil || whole.Hash == 0 || whole.Header.Revision != hash(0, 0).HashRevision {
		t.Errorf("hash of the database: %v, %v", whole, err)
	}
}

func TestMemberUpdate(t *testing.T) {
	for _, test := range []struct {
		reason string
		dead   []string
		id     uint64 // 0: that of cp-1
		urls   []string
		want   []string // of cp-1, afterwards
		fails  string
	}{
		{reason: "another URL", urls: []string{"https://10.0.0.1:2380"}, want: []string{"https://10.0.0.1:2380"}},
		{reason: "the same URL", urls: []string{"https://cp-1:2380"}, want: []string{"https://cp-1:2380"}},
		{reason: "a URL of another member", urls: []string{"https://cp-0:2380"}, want: []string{"https://cp-1:2380"}, fails: "Peer URLs already exists"},
		{reason: "text that is no URL", urls: []string{"cp-1"}, want: []string{"https://cp-1:2380"}, fails: "URLs are invalid"},
		{reason: "no URL", want: []string{"https://cp-1:2380"}, fails: "URLs are invalid"},
		{reason: "a member that does not exist", id: 1, urls: []string{"https://x:2380"}, want: []string{"https://cp-1:2380"}, fails: "member not found"},
		{reason: "no quorum", dead: []string{"cp-1", "cp-2"}, urls: []string{"https://x:2380"}, want: []string{"https://cp-1:2380"}, fails: "request timed out"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			c := newTestCluster(t)
			joinMembers(t, c, 3)
			client := c.etcdClient(t, c.endpoint.Address(), "cp-0")
			if _, err := client.Status(t.Context(), "etcd-cp-0"); err != nil {
				t.Fatal(err)
			}
			if test.id == 0 {
				test.id = member(t, c, "cp-1").ID
			}
			if err := c.group.SetFaults(faults.Faults{DeadMachines: test.dead}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if test.dead != nil {
				ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
			}
			defer cancel()
			// etcd's client would reject URLs itself.
			_, err := etcdserverpb.NewClusterClient(client.ActiveConnection()).MemberUpdate(ctx,
				&etcdserverpb.MemberUpdateRequest{ID: test.id, PeerURLs: test.urls})
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("got error %v, want %q", err, test.fails)
			}
			if diff := cmp.Diff(test.want, member(t, c, "cp-1").PeerURLs); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func member(t *testing.T, c *testCluster, name string) etcd.Member {
	t.Helper()
	all, err := etcd.Clusters(c.group)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all[0].Members {
		if m.Machine == (etcd.Machine{Name: name, UID: types.UID(name)}) {
			return m
		}
	}
	t.Fatalf("there is no member %s", name)
	return etcd.Member{}
}
