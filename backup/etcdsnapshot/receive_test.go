package etcdsnapshot

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

func TestReceive(t *testing.T) {
	e := startEtcd(t, filepath.Join(t.TempDir(), "data"), "m1")
	e.put(t, "a", make([]byte, 100000))
	good := e.messages(t)
	broken := errors.New("connection reset")
	// copied returns the messages, some of which a test changes.
	copied := func(change func(m []*etcdserverpb.SnapshotResponse) []*etcdserverpb.SnapshotResponse) []*etcdserverpb.SnapshotResponse {
		var all []*etcdserverpb.SnapshotResponse
		for _, m := range good {
			all = append(all, &etcdserverpb.SnapshotResponse{Blob: bytes.Clone(m.Blob), RemainingBytes: m.RemainingBytes})
		}
		return change(all)
	}
	type messages = []*etcdserverpb.SnapshotResponse
	last := len(good) - 1
	tests := []struct {
		reason string
		change func(m messages) messages
		end    error
		want   error
	}{
		{"a complete snapshot", func(m messages) messages { return m }, io.EOF, nil},
		{"an empty message in between", func(m messages) messages { return append(messages{m[0], {}}, m[1:]...) }, io.EOF, nil},
		{"a hash in two messages", func(m messages) messages {
			m = append(m, &etcdserverpb.SnapshotResponse{Blob: m[last].Blob[5:]})
			m[last].Blob = m[last].Blob[:5]
			return m
		}, io.EOF, nil},
		{"no message", func(messages) messages { return nil }, io.EOF, ErrTruncated},
		{"no hash", func(m messages) messages { return m[:last] }, io.EOF, ErrTruncated},
		{"a part of the hash", func(m messages) messages { m[last].Blob = m[last].Blob[:31]; return m }, io.EOF, ErrTruncated},
		{"a missing message", func(m messages) messages { return append(m[:0:0], m[1:]...) }, io.EOF, ErrDamaged},
		{"a connection that breaks", func(m messages) messages { return m[:last] }, broken, broken},
		{"a connection that breaks at once", func(messages) messages { return nil }, broken, broken},
		{"a connection that breaks at the end", func(m messages) messages { return m }, broken, broken},
		{"a bit of the data flipped", func(m messages) messages { m[0].Blob[5000] ^= 1; return m }, io.EOF, ErrDamaged},
		{"a bit of the hash flipped", func(m messages) messages { m[last].Blob[31] ^= 1; return m }, io.EOF, ErrDamaged},
		{"something behind the hash", func(m messages) messages { return append(m, &etcdserverpb.SnapshotResponse{Blob: []byte("x")}) }, io.EOF, ErrDamaged},
		{"a size that no database has", func(m messages) messages { m[0].RemainingBytes++; return m }, io.EOF, ErrDamaged},
		{"an absurd size", func(m messages) messages { m[0].RemainingBytes = 1 << 63; return m }, io.EOF, ErrTruncated},
	}
	var whole bytes.Buffer
	for _, m := range good {
		whole.Write(m.Blob)
	}
	database := whole.Bytes()[:whole.Len()-hashSize]
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			var file bytes.Buffer
			summary, err := Receive(&file, stream(copied(tc.change), tc.end))
			if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if err != nil {
				return
			}
			want := Summary{Size: int64(whole.Len()), SHA256: sha256.Sum256(database)}
			if diff := cmp.Diff(want, summary); diff != "" || !bytes.Equal(file.Bytes(), whole.Bytes()) {
				t.Errorf("%d bytes, %s", file.Len(), diff)
			}
		})
	}
}

func TestStreamHasItsSizeBefore(t *testing.T) {
	e := startEtcd(t, filepath.Join(t.TempDir(), "data"), "m1")
	stream, err := NewStream(stream(e.messages(t), io.EOF))
	if err != nil {
		t.Fatal(err)
	}
	size := stream.Size()
	// One byte at a time: the boundaries between the database and its hash are of no importance.
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{stream}, make([]byte, 7))
	if err != nil || n != size {
		t.Errorf("read %d of %d bytes: %v", n, size, err)
	}
	failed := errors.New("disk full")
	if _, err := Receive(writerFunc(func([]byte) (int, error) { return 0, failed }), func() ([]byte, uint64, error) {
		return []byte(strings.Repeat("x", 512)), 0, nil
	}); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
