package database

import (
	"bytes"
	"hash/crc32"
	"slices"

	bolt "go.etcd.io/bbolt"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// HashKV returns etcd's hash of all keys at a revision, which must not be older than the compaction. It needs no file.
func HashKV(v store.Versions, revision uint64) (uint32, error) {
	all := entries(v)
	if i := slices.IndexFunc(all, func(e entry) bool { return e.revision > revision }); i >= 0 {
		all = all[:i]
	}
	latest := make(map[string]uint64, len(all))
	for _, e := range all {
		latest[e.key] = e.revision
	}
	hash := crc32.New(castagnoli())
	_, _ = hash.Write(keyBucket) // never fails
	i := -1
	err := each(all, func(key, value []byte) error {
		// What a compaction at this revision would remove does not count if it is older than the last compaction.
		if i++; all[i].revision <= v.Compacted && latest[all[i].key] != all[i].revision {
			return nil
		}
		_, _ = hash.Write(key)
		_, _ = hash.Write(value)
		return nil
	})
	return hash.Sum32(), err
}

// Hash returns etcd's hash of a whole database, without what differs between members.
func Hash(v store.Versions, m Membership) (uint32, error) {
	sum := crc32.New(castagnoli())
	file, err := build(v, m, func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			_, _ = sum.Write(name) // never fails
			return b.ForEach(func(k, v []byte) error {
				if bytes.Equal(name, metaBucket) && (string(k) == indexKey || string(k) == termKey || string(k) == storageVersionKey) {
					return nil
				}
				_, _ = sum.Write(k)
				_, _ = sum.Write(v)
				return nil
			})
		})
	})
	if err != nil {
		return 0, err
	}
	return sum.Sum32(), file.Close()
}
