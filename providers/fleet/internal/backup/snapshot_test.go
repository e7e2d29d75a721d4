package backup

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"testing"
)

// chunked returns a function that returns parts in order, each with the number of bytes of the database that follow it.
func chunked(size int, parts ...[]byte) func() ([]byte, uint64, error) {
	sent := 0
	return func() ([]byte, uint64, error) {
		if len(parts) == 0 {
			return nil, 0, io.EOF
		}
		part := parts[0]
		parts = parts[1:]
		sent += len(part)
		return part, uint64(max(size-sent, 0)), nil
	}
}

func TestSnapshot(t *testing.T) {
	database := bytes.Repeat([]byte("0123456789"), 1000)
	sum := sha256.Sum256(database)
	whole := append(bytes.Clone(database), sum[:]...)
	flipped := bytes.Clone(database)
	flipped[4711] ^= 1
	tests := []struct {
		reason string
		size   int
		parts  [][]byte
		want   string
	}{
		{reason: "chunks, and the checksum as the last one", size: 10000, parts: [][]byte{database[:3000], database[3000:], sum[:]}},
		{reason: "the checksum within a chunk, and split", size: 10000, parts: [][]byte{database[:9990], whole[9990:10005], whole[10005:]}},
		{reason: "nothing", want: "the etcd member sent an empty snapshot"},
		{reason: "an end that is missing", size: 10000, parts: [][]byte{database[:3000]}, want: "the etcd member sent less than it announced"},
		{reason: "a checksum that is missing", size: 10000, parts: [][]byte{database}, want: "the etcd member sent less than it announced"},
		{reason: "a checksum that is cut", size: 10000, parts: [][]byte{database, sum[:31]}, want: "the etcd member sent less than it announced"},
		{reason: "a bit that is flipped", size: 10000, parts: [][]byte{flipped, sum[:]},
			want: "the checksum of the etcd member's snapshot does not match its content"},
		{reason: "more than announced", size: 5000, parts: [][]byte{database[:4000], database[4000:], sum[:]},
			want: "the etcd member sent more than it announced"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			s, err := open(chunked(tt.size, tt.parts...))
			var got []byte
			if err == nil {
				got, err = io.ReadAll(s)
			}
			if tt.want != "" {
				if err == nil || err.Error() != tt.want {
					t.Fatalf("got %v, want %s", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, whole) || int64(len(got)) != s.total() || !bytes.Equal(s.sum, sum[:]) {
				t.Errorf("got %d bytes of %d", len(got), s.total())
			}
		})
	}
}

func TestSnapshotThatAnnouncesTooMuch(t *testing.T) {
	if _, err := open(func() ([]byte, uint64, error) { return []byte("x"), 1 << 60, nil }); err == nil {
		t.Error("a snapshot of an exabyte is accepted")
	}
	broken := errors.New("broken")
	if _, err := open(func() ([]byte, uint64, error) { return nil, 0, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of the stream", err)
	}
}
