package store

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestJournalIsContinued(t *testing.T) {
	path := JournalPath(t.TempDir(), types.NamespacedName{Namespace: "ns", Name: "c"})
	ensure(t, open(t, path), filled("a", 0))
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	after, err := os.Stat(path)
	if err != nil || !os.SameFile(before, after) || after.Size() != before.Size() || s.journal.size != after.Size() {
		t.Errorf("opening changed the journal: %v, %v, recorded size %d, %v", before, after, s.journal.size, err)
	}
}

func TestJournalsAreRewritten(t *testing.T) {
	path := JournalPath(t.TempDir(), types.NamespacedName{Namespace: "ns", Name: "c"})
	s := open(t, path)
	count(t, s, 5*compactLines)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if s.journal.lines > compactLines+1 || info.Size() != s.journal.size {
		t.Errorf("the journal has %d lines and %d bytes, recorded size %d", s.journal.lines, info.Size(), s.journal.size)
	}
	want := contents(s)
	if diff := cmp.Diff(want, contents(open(t, path))); diff != "" {
		t.Error(diff)
	}
}

func contents(s *Store) map[string]string {
	all := map[string]string{}
	for _, r := range []Resource{{Resource: "configmaps"}, Namespaces()} {
		list, _ := s.List(r, "", Selector{})
		for _, o := range list {
			all[o.Key.String()] = string(o.Raw())
		}
	}
	return all
}
