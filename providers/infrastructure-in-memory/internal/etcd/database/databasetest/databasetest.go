// Package databasetest restores snapshots in tests as a backup does: with etcd's own tool, and packed and encrypted as a machine downloads
// them.
package databasetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// Placeholder is the peer URL of a restored member.
const Placeholder = "http://placeholder.invalid:2380"

// Snapshot stores a database with its hash, as a client stores a snapshot, and returns its path.
func Snapshot(t testing.TB, from io.Reader) string {
	t.Helper()
	content, err := io.ReadAll(from)
	must(t, err)
	sum := sha256.Sum256(content)
	path := filepath.Join(t.TempDir(), "snapshot.db")
	must(t, os.WriteFile(path, append(content, sum[:]...), 0o600))
	return path
}

// Restore restores a snapshot with etcd's tool, with a single member, and returns the data directory. bump is added to the revision;
// without it, no compaction is noted.
func Restore(t testing.TB, path string, bump uint64) string {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "etcd")
	must(t, snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: path, Name: "restored", OutputDataDir: directory, PeerURLs: []string{Placeholder},
		InitialCluster: "restored=" + Placeholder, InitialClusterToken: "token", RevisionBump: bump, MarkCompacted: bump > 0,
	}))
	return directory
}

// Pack returns a gzipped tar of a folder without some of its files.
func Pack(t testing.TB, directory string, without ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	files := tar.NewWriter(zipped)
	source := os.DirFS(directory)
	if len(without) > 0 {
		copied := filepath.Join(t.TempDir(), "copy")
		must(t, os.CopyFS(copied, source))
		for _, name := range without {
			must(t, os.RemoveAll(filepath.Join(copied, name)))
		}
		source = os.DirFS(copied)
	}
	must(t, files.AddFS(source))
	must(t, files.Close())
	must(t, zipped.Close())
	return out.Bytes()
}

// Key and IV are those of Encrypt.
const (
	Key = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	IV  = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
)

// Encrypt encrypts with AES-256-CTR, and returns the SHA-256 of the result, too.
func Encrypt(t testing.TB, content []byte) (encrypted []byte, sum string) {
	t.Helper()
	key, err := hex.DecodeString(Key)
	must(t, err)
	iv, err := hex.DecodeString(IV)
	must(t, err)
	block, err := aes.NewCipher(key)
	must(t, err)
	encrypted = make([]byte, len(content))
	cipher.NewCTR(block, iv).XORKeyStream(encrypted, content)
	hash := sha256.Sum256(encrypted)
	return encrypted, hex.EncodeToString(hash[:])
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
