package etcdsnapshot

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/maphash"
	"io"
	"os"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Names of buckets and keys of etcd's database.
const (
	keyBucket, metaBucket, clusterBucket = "key", "meta", "cluster"
	storageVersionKey                    = "storageVersion"
	clusterVersionKey                    = "clusterVersion"
	finishedCompaction                   = "finishedCompactRev"
	scheduledCompaction                  = "scheduledCompactRev"
)

// revisionSize is the length of a revision as a key: two numbers, and a character between them. Those of deletions have one more.
const revisionSize = 17

// Info is what a snapshot contains.
type Info struct {
	// Revision is the newest one. CompactRevision is the one up to which older ones are compacted, or will be when etcd starts.
	Revision, CompactRevision int64
	// Keys is the number of keys that exist at the newest revision.
	Keys int
	// Hash is that of all buckets, keys and values, as etcdutl snapshot status prints it. It is equal for equal content, unlike SHA256, which
	// also depends on where it is in the file.
	Hash uint32
	// StorageVersion is what etcd 3.6 and later record, such as 3.6.0; "" for older versions. ClusterVersion is the lowest version of all
	// members, such as 3.5.0; "" if unknown.
	StorageVersion, ClusterVersion string
	Summary
}

// Inspect checks a snapshot completely, and returns what it contains. It needs about 20 bytes of memory per key. The file must not change
// meanwhile. Errors are ErrTruncated, ErrDamaged, or those of the file and of ctx.
func Inspect(ctx context.Context, path string) (Info, error) {
	file, summary, err := openChecked(ctx, path)
	if err != nil {
		return Info{}, err
	}
	defer closing(file)
	info := Info{Summary: summary}
	err = guarded(func() error {
		db, err := bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
		if err != nil {
			return fmt.Errorf("opening the snapshot: %w", err)
		}
		defer closing(db)
		return db.View(func(tx *bbolt.Tx) error { return inspect(ctx, tx, &info) })
	})
	if err != nil {
		return Info{}, err
	}
	return info, nil
}

// guarded turns panics into ErrDamaged, also those of addresses behind the end of a mapped file.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: bbolt cannot read it: %.200v", ErrDamaged, cause)
		}
	}()
	return f()
}

// inspector reads all of a database.
type inspector struct {
	ctx  context.Context //nolint:containedctx // for the duration of one call
	info *Info
	hash hash.Hash32
	// live are the hashes of the keys that exist. Two of 100 million would be the same with a probability of 0.03 %.
	live map[uint64]struct{}
	seed maphash.Seed
	read int
}

func inspect(ctx context.Context, tx *bbolt.Tx, info *Info) error {
	i := &inspector{
		ctx: ctx, info: info, hash: crc32.New(crc32.MakeTable(crc32.Castagnoli)), live: map[uint64]struct{}{}, seed: maphash.MakeSeed(),
	}
	var last []byte
	err := tx.ForEach(func(name []byte, bucket *bbolt.Bucket) error {
		if bucket == nil || (last != nil && bytes.Compare(last, name) >= 0) {
			return fmt.Errorf("%w: its buckets are in disorder", ErrDamaged)
		}
		last = name
		i.hash.Write(name)
		return i.bucket(string(name), bucket)
	})
	if err != nil {
		return err
	}
	for _, name := range []string{keyBucket, metaBucket} {
		if tx.Bucket([]byte(name)) == nil {
			return fmt.Errorf("%w: it has no bucket %q, so it is no database of etcd", ErrDamaged, name)
		}
	}
	meta := tx.Bucket([]byte(metaBucket))
	info.StorageVersion = short(meta.Get([]byte(storageVersionKey)))
	if cluster := tx.Bucket([]byte(clusterBucket)); cluster != nil {
		info.ClusterVersion = short(cluster.Get([]byte(clusterVersionKey)))
	}
	for _, name := range []string{finishedCompaction, scheduledCompaction} {
		value := meta.Get([]byte(name))
		if value == nil {
			continue
		}
		revision, _, valid := parseRevision(value)
		if !valid {
			return fmt.Errorf("%w: the revision of a compaction is invalid", ErrDamaged)
		}
		info.CompactRevision = max(info.CompactRevision, revision)
	}
	info.Keys, info.Hash = len(i.live), i.hash.Sum32()
	return nil
}

func (i *inspector) bucket(name string, bucket *bbolt.Bucket) error {
	var last []byte
	return bucket.ForEach(func(key, value []byte) error {
		if i.read++; i.read%1000 == 0 && i.ctx.Err() != nil {
			return context.Cause(i.ctx)
		}
		if last != nil && bytes.Compare(last, key) >= 0 {
			return fmt.Errorf("%w: the keys of bucket %q are in disorder", ErrDamaged, name)
		}
		last = key
		i.hash.Write(key)
		i.hash.Write(value)
		if name != keyBucket {
			return nil
		}
		return i.revision(key, value)
	})
}

// revision takes a revision of a key into account.
func (i *inspector) revision(key, value []byte) error {
	revision, deleted, valid := parseRevision(key)
	if !valid {
		return fmt.Errorf("%w: a revision is invalid", ErrDamaged)
	}
	i.info.Revision = revision
	var entry mvccpb.KeyValue
	if err := entry.Unmarshal(value); err != nil {
		return fmt.Errorf("%w: the value of revision %d is invalid", ErrDamaged, revision)
	}
	id := maphash.Bytes(i.seed, entry.Key)
	switch {
	case deleted:
		delete(i.live, id)
	case len(entry.Key) > 0: // A restore may have put a revision without a key, to raise the newest one.
		i.live[id] = struct{}{}
	}
	return nil
}

// parseRevision parses the key of a revision.
func parseRevision(b []byte) (revision int64, deleted, valid bool) {
	deleted = len(b) == revisionSize+1 && b[revisionSize] == 't'
	if (len(b) != revisionSize && !deleted) || b[8] != '_' {
		return 0, false, false
	}
	revision = int64(binary.BigEndian.Uint64(b))
	return revision, deleted, revision >= 0 && int64(binary.BigEndian.Uint64(b[9:])) >= 0
}

// short returns a version, and "" for what cannot be one.
func short(b []byte) string {
	if len(b) > 32 || bytes.ContainsFunc(b, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return string(b)
}

// closing closes what was only read.
func closing(c io.Closer) { c.Close() }

// exists reports whether there is anything at a path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
