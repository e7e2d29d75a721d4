package database

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// Lengths of revisions as keys of bucket key: main and sub revision, with an underscore between them, and possibly the mark of a deletion.
const (
	revisionLength  = 8 + 1 + 8
	tombstoneLength = revisionLength + 1
	tombstoneMark   = 't'
)

// entry is an entry of bucket key: a key at a revision. The zero object is a note of an API server, see compactKey.
type entry struct {
	revision uint64
	key      string
	deleted  bool
	object   *store.Object
}

// entries returns the entries of the versions of a store, sorted. Every revision after the compaction has one.
func entries(v store.Versions) []entry {
	all := make([]entry, 0, len(v.All)+1)
	noted := false
	note := func() {
		if !noted {
			all = append(all, entry{revision: v.Compacted, key: compactKey})
			noted = true
		}
	}
	for _, one := range v.All {
		at := one.Object.Revision
		internal := one.Object.Key.Resource.Group == store.Simulation
		switch {
		case internal && at <= v.Compacted:
			continue
		case at == v.Compacted:
			noted = true
		case at > v.Compacted:
			note()
		}
		if internal {
			all = append(all, entry{revision: at, key: compactKey})
			continue
		}
		all = append(all, entry{revision: at, key: keyOf(one.Object.Key), deleted: one.Deleted, object: one.Object})
	}
	note()
	return all
}

// each calls a function with each entry of bucket key, in order. Values are encoded one at a time.
func each(all []entry, do func(key, value []byte) error) error {
	type past struct{ created, versions int64 }
	known := make(map[string]past, len(all))
	for _, e := range all {
		kv := mvccpb.KeyValue{Key: []byte(e.key)}
		if e.deleted {
			delete(known, e.key)
		} else {
			p := known[e.key]
			if p.versions++; p.created == 0 {
				p.created = int64(e.revision)
			}
			known[e.key] = p
			kv.CreateRevision, kv.ModRevision, kv.Version = p.created, int64(e.revision), p.versions
			var err error
			if kv.Value, err = e.value(); err != nil {
				return err
			}
		}
		value, err := kv.Marshal()
		if err != nil {
			return fmt.Errorf("encode %s: %w", e.key, err)
		}
		if err := do(revisionKey(e.revision, e.deleted), value); err != nil {
			return err
		}
	}
	return nil
}

// revisionKey returns the key of a revision in bucket key.
func revisionKey(revision uint64, deleted bool) []byte {
	b := make([]byte, revisionLength, tombstoneLength)
	binary.BigEndian.PutUint64(b, revision)
	b[8] = '_'
	if deleted {
		b = append(b, tombstoneMark)
	}
	return b
}

// value returns what a kube-apiserver stores: the resource version is that of etcd, and not stored.
func (e entry) value() ([]byte, error) {
	if e.object == nil {
		return []byte(strconv.FormatUint(e.revision, 10)), nil
	}
	var object, metadata map[string]json.RawMessage
	err := json.Unmarshal(e.object.Raw(), &object)
	if err == nil {
		err = json.Unmarshal(object["metadata"], &metadata)
	}
	if err == nil {
		delete(metadata, "resourceVersion")
		object["metadata"], err = json.Marshal(metadata)
	}
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.object.Key, err)
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.object.Key, err)
	}
	return append(text, '\n'), nil
}
