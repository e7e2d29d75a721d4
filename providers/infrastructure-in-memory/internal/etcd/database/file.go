package database

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	bolt "go.etcd.io/bbolt"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// Buckets of etcd's database.
var (
	keyBucket     = []byte("key")
	metaBucket    = []byte("meta")
	clusterBucket = []byte("cluster")
	memberBucket  = []byte("members")
)

// otherBuckets are the buckets of etcd that are empty.
func otherBuckets() []string {
	return []string{"lease", "alarm", "members_removed", "auth", "authUsers", "authRoles"}
}

// Keys of the buckets meta and cluster.
const (
	indexKey          = "consistent_index"
	termKey           = "term"
	voterKey          = "confState"
	scheduledKey      = "scheduledCompactRev"
	finishedKey       = "finishedCompactRev"
	storageVersionKey = "storageVersion"
	clusterVersionKey = "clusterVersion"
	downgradeKey      = "downgrade"
)

// A transaction has at most this many entries and bytes, because bbolt keeps all pages that it changes in memory.
const (
	batchEntries = 1000
	batchBytes   = 1 << 20
	// fill is how full pages of bucket key become: entries are only appended.
	fill = 0.9
)

// Member is a member, as etcd stores it.
type Member struct {
	// ID identifies the member.
	ID uint64 `json:"id"`
	// PeerURLs are where other members reach it.
	PeerURLs []string `json:"peerURLs"`
	// Name is its name, empty until it has started.
	Name string `json:"name,omitempty"`
	// ClientURLs are where clients reach it.
	ClientURLs []string `json:"clientURLs,omitempty"`
}

// Membership is what etcd's database has besides keys.
type Membership struct {
	// Members are the members. Removed ones are not noted.
	Members []Member
	// Term and Index are those of raft.
	Term, Index uint64
	// Version is the version of the cluster, with a patch version of 0, such as 3.6.0.
	Version string
	// Versioned is whether the version is noted as that of the storage, as etcd does since 3.6.
	Versioned bool
}

// File is a database file without a name: closing it removes it.
type File struct {
	file *os.File
	// Size is the size of the database in bytes.
	Size int64
}

// Reader reads the database.
func (f *File) Reader() io.Reader { return io.NewSectionReader(f.file, 0, f.Size) }

// Close removes the file.
func (f *File) Close() error { return f.file.Close() }

// Write writes a database to a temporary file. The caller closes it.
func Write(v store.Versions, m Membership) (*File, error) {
	f := &File{}
	file, err := build(v, m, func(tx *bolt.Tx) error { f.Size = tx.Size(); return nil })
	if err != nil {
		return nil, err
	}
	f.file = file
	// The last pages may be free, and not written.
	if err := file.Truncate(f.Size); err != nil {
		return nil, errors.Join(fmt.Errorf("write a database: %w", err), file.Close())
	}
	return f, nil
}

// build writes a database, and calls a function to read it. The caller closes the file.
func build(v store.Versions, m Membership, read func(*bolt.Tx) error) (*os.File, error) {
	file, db, err := temporary()
	if err != nil {
		return nil, fmt.Errorf("create a database: %w", err)
	}
	err = writeKeys(db, v)
	if err == nil {
		err = db.Update(func(tx *bolt.Tx) error { return writeMembership(tx, v, m) })
	}
	if err == nil {
		err = db.View(read)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("write a database: %w", err), file.Close())
	}
	return file, nil
}

// temporary creates a database in a file that has no name from the moment it is opened.
func temporary() (*os.File, *bolt.DB, error) {
	file, err := os.CreateTemp("", "capim-etcd-")
	if err != nil {
		return nil, nil, err
	}
	db, err := bolt.Open(file.Name(), 0o600, &bolt.Options{
		NoSync: true, NoGrowSync: true, FreelistType: bolt.FreelistMapType,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			opened, err := os.OpenFile(name, flag, mode)
			return opened, errors.Join(err, os.Remove(name))
		},
	})
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, db, nil
}

func writeKeys(db *bolt.DB, v store.Versions) error {
	var tx *bolt.Tx
	var bucket *bolt.Bucket
	count, size := 0, 0
	begin := func() (err error) {
		if tx, err = db.Begin(true); err != nil {
			return err
		}
		count, size = 0, 0
		if bucket, err = tx.CreateBucketIfNotExists(keyBucket); err == nil {
			bucket.FillPercent = fill
		}
		return err
	}
	err := begin()
	if err == nil {
		err = each(entries(v), func(key, value []byte) error {
			if count >= batchEntries || size >= batchBytes {
				if err := tx.Commit(); err != nil {
					return err
				}
				if err := begin(); err != nil {
					return err
				}
			}
			count++
			size += len(value)
			return bucket.Put(key, value)
		})
	}
	if tx == nil {
		return err
	}
	if err != nil {
		_ = tx.Rollback() // The database is removed.
		return err
	}
	return tx.Commit()
}

func writeMembership(tx *bolt.Tx, v store.Versions, m Membership) error {
	w := &writer{tx: tx}
	for _, name := range otherBuckets() {
		w.bucket([]byte(name))
	}
	w.bucket(memberBucket)
	var voters []uint64
	for _, one := range m.Members {
		voters = append(voters, one.ID)
		w.json(memberBucket, strconv.FormatUint(one.ID, 16), one)
	}
	w.put(metaBucket, indexKey, number(m.Index))
	w.put(metaBucket, termKey, number(m.Term))
	w.json(metaBucket, voterKey, map[string]any{"voters": voters, "auto_leave": false})
	w.put(metaBucket, scheduledKey, revisionKey(v.Compacted, false))
	w.put(metaBucket, finishedKey, revisionKey(v.Compacted, false))
	if m.Versioned {
		w.put(metaBucket, storageVersionKey, []byte(m.Version))
	}
	w.put(clusterBucket, clusterVersionKey, []byte(m.Version))
	w.json(clusterBucket, downgradeKey, map[string]any{"target-version": "", "enabled": false})
	return w.err
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// writer writes to buckets until the first error.
type writer struct {
	tx  *bolt.Tx
	err error
}

func (w *writer) bucket(name []byte) *bolt.Bucket {
	if w.err != nil {
		return nil
	}
	var b *bolt.Bucket
	b, w.err = w.tx.CreateBucketIfNotExists(name)
	return b
}

func (w *writer) put(bucket []byte, key string, value []byte) {
	if b := w.bucket(bucket); w.err == nil {
		w.err = b.Put([]byte(key), value)
	}
}

func (w *writer) json(bucket []byte, key string, value any) {
	text, err := json.Marshal(value)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.put(bucket, key, text)
}
