package store

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/watch"
)

// Version is a version of an object.
type Version struct {
	// Object is the object in this version; its last state if it was deleted.
	Object *Object
	// Deleted is whether this version is the deletion.
	Deleted bool
}

// Versions are all versions that a store still has, as etcd has them after a compaction: the objects at the revision of the
// compaction, and every change since.
type Versions struct {
	// Compacted is the revision of the compaction: earlier versions are forgotten.
	Compacted uint64
	// Revision is the revision at which they were read.
	Revision uint64
	// All are the versions, sorted by revision, which is unique.
	All []Version
}

// Versions returns the versions that the store has at this moment. Objects are shared, so it costs little memory.
func (s *Store) Versions() Versions {
	s.mu.RLock()
	v := Versions{Compacted: s.history.forgotten, Revision: s.revision}
	for _, stored := range s.objects {
		for _, o := range stored {
			if o.Revision <= v.Compacted {
				v.All = append(v.All, Version{Object: o})
			}
		}
	}
	for _, e := range s.history.events {
		v.All = append(v.All, Version{Object: e.Object, Deleted: e.Type == watch.Deleted})
		if e.Previous != nil && e.Previous.Revision <= v.Compacted {
			v.All = append(v.All, Version{Object: e.Previous})
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(v.All, func(a, b Version) int { return cmp.Compare(a.Object.Revision, b.Object.Revision) })
	return v
}
