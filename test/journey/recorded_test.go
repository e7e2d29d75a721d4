package journey

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/cluster-api/clusterctl/takeover/difference"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/recorded"
	"sigs.k8s.io/cluster-api/test/recordedcluster"
)

// stored is the storage of a management cluster, for a test.
type stored struct {
	*recordedcluster.Storage
	t testing.TB
}

// storage connects to the etcd of a running program.
func (s *Standalone) storage() *stored {
	s.t.Helper()
	storage, err := recordedcluster.Open(filepath.Join(s.directory, "data"))
	testenv.Must(s.t, err)
	s.t.Cleanup(func() { _ = storage.Close() })
	return &stored{Storage: storage, t: s.t}
}

// objects returns all objects of recorded custom resources in a namespace, by key.
func (s *stored) objects(namespace string) map[string]difference.Stored {
	s.t.Helper()
	found, err := s.Objects(s.t.Context(), namespace)
	testenv.Must(s.t, err)
	return found
}

// changes returns what differs between two calls of objects, without order: objects that were created or deleted, and fields as
// "RESOURCE + .path" if they were added, with - if they were removed, and with ~ if they have another value. What follows from other changes
// is left out: managedFields, generations and times; if nothing else changes, it is "RESOURCE only managedFields of MANAGER".
func (s *stored) changes(before, after map[string]difference.Stored) []string {
	s.t.Helper()
	objects, err := difference.Compare(before, after, parse)
	testenv.Must(s.t, err)
	found := map[string]bool{}
	for _, o := range objects {
		resource := strings.Split(o.Key, "/")[3]
		for _, field := range o.Fields {
			found[resource+" "+field] = true
		}
		switch {
		case o.Effect != difference.Changed:
			found[o.Key+" was "+string(o.Effect)] = true
		case len(o.Fields) == 0 && !o.Times: // While the simulated machines start, conditions may change, and change back.
			found[resource+" only managedFields of "+strings.Join(o.Managers, ", ")] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func parse(content []byte) (map[string]any, error) {
	var parsed map[string]any
	return parsed, json.Unmarshal(content, &parsed)
}

// load stores the objects of a recorded Cluster in the namespace of a World, as if they had been recorded a moment ago. A free port replaces
// that of its API server.
func (w *World) load(s *stored, state recorded.State) {
	w.t.Helper()
	port := shared.Management(w.t).freePortBelow(w.t, recordedLimit)
	c, err := recordedcluster.NewCopy(state, w.Namespace, port, time.Now())
	testenv.Must(w.t, err)
	testenv.Must(w.t, s.Put(w.t.Context(), c.Objects()...))
	for _, secret := range c.Secrets {
		testenv.Must(w.t, w.Client.Create(w.t.Context(), secret))
	}
}
