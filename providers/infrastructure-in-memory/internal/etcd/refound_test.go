package etcd

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd/database"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd/database/databasetest"
)

const placeholder = "https://placeholder.invalid:2380"

// directory is a data directory of member 7 of cluster 5, which has more members.
func directory(g *cloud.Group, more ...uint64) *database.Directory {
	d := &database.Directory{
		Cluster: 5, Self: 7, Members: []database.Member{{ID: 7, Name: "restored", PeerURLs: []string{placeholder}}},
		Content: &cloud.Content{Revision: g.Revision() + 1000, Objects: []store.Imported{{
			Key:      store.Key{Resource: store.Namespaces(), Name: "restored"},
			Revision: 1, JSON: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"restored"}}`),
		}}},
	}
	for _, id := range more {
		d.Members = append(d.Members, database.Member{ID: id, Name: "other", PeerURLs: []string{"https://other:2380"}})
	}
	return d
}

func TestRefound(t *testing.T) {
	for _, test := range []struct {
		reason   string
		nodes    []string
		lose     func(*testing.T, *cloud.Group)
		restore  func(*cloud.Group) *database.Directory
		clusters int
		self     uint64   // 0: derived
		objects  []string // which of the namespaces "before" and "restored" exist
		serves   bool
	}{
		{"the first etcd of a cluster can have data", nil, nil, func(g *cloud.Group) *database.Directory { return directory(g) },
			1, 7, []string{"restored"}, true},
		{"all machines are gone", []string{"a", "b"}, func(t *testing.T, g *cloud.Group) { deleteMachines(t, g, "a", "b") },
			func(g *cloud.Group) *database.Directory { return directory(g) }, 1, 7, []string{"restored"}, true},
		{"all machines are gone, and there is no data", []string{"a"}, func(t *testing.T, g *cloud.Group) { deleteMachines(t, g, "a") },
			func(*cloud.Group) *database.Directory { return nil }, 1, 0, nil, true},
		{"machines without power may return with their cluster", []string{"a"}, func(t *testing.T, g *cloud.Group) {
			if err := g.SetFaults(faults.Faults{DeadMachines: []string{"a"}}); err != nil {
				t.Fatal(err)
			}
		}, func(g *cloud.Group) *database.Directory { return directory(g) }, 2, 7, []string{"restored"}, true},
		{"a split brain does not change objects", []string{"a"}, nil, func(g *cloud.Group) *database.Directory { return directory(g) },
			2, 7, []string{"before"}, true},
		{"data with more members has no quorum", []string{"a"}, func(t *testing.T, g *cloud.Group) { deleteMachines(t, g, "a") },
			func(g *cloud.Group) *database.Directory { return directory(g, 8, 9) }, 1, 7, []string{"restored"}, false},
	} {
		t.Run(test.reason, func(t *testing.T) {
			disk := t.TempDir()
			g := newGroupAt(t, disk)
			for i, node := range test.nodes {
				start := map[bool]func(*cloud.Group, Machine) error{true: Found, false: Join}[i == 0]
				if err := start(g, boot(t, g, node, node)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := store.Ensure(g, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "before"}}); err != nil {
				t.Fatal(err)
			}
			if test.lose != nil {
				test.lose(t, g)
			}
			x := boot(t, g, "x", "x")
			for range 2 { // The second time, the machine has data, and nothing changes.
				if err := Refound(g, x, test.restore(g)); err != nil {
					t.Fatal(err)
				}
			}
			for _, g := range []*cloud.Group{g, newGroupAt(t, disk)} { // also after a restart
				var objects []string
				for _, name := range []string{"before", "restored"} {
					if _, err := store.Get[corev1.Namespace](g, "", name); err == nil {
						objects = append(objects, name)
					}
				}
				if diff := cmp.Diff(test.objects, objects); diff != "" {
					t.Errorf("objects: -want +got:\n%s", diff)
				}
				all := clusters(t, g)
				if len(all) != test.clusters {
					t.Fatalf("%d clusters, want %d: %+v", len(all), test.clusters, all)
				}
				last := all[len(all)-1]
				if self := last.named("x"); !self.Alive || test.self != 0 && (self.ID != test.self || last.ID != 5 || self.PeerURLs[0] != placeholder) {
					t.Errorf("the machine is member %+v of cluster %d", self, last.ID)
				}
				if serves, err := Serves(g); err != nil || serves != test.serves || test.serves != (last.Leader != 0) {
					t.Errorf("serves = %v, leader %d, %v", serves, last.Leader, err)
				}
			}
		})
	}
}

func TestRefoundWithoutSelf(t *testing.T) {
	g := newGroup(t, "a")
	d := directory(g)
	d.Self = 6
	if err := Refound(g, boot(t, g, "x", "x"), d); !errors.Is(err, ErrNoSelf) {
		t.Errorf("got %v", err)
	}
}

// TestJoinNeedsAPeerURL joins a restored cluster, whose member has a placeholder as peer URL.
func TestJoinNeedsAPeerURL(t *testing.T) {
	g := newGroup(t)
	if err := Refound(g, boot(t, g, "x", "x"), directory(g)); err != nil {
		t.Fatal(err)
	}
	y := boot(t, g, "y", "y")
	if err := Join(g, y); !errors.Is(err, ErrNoPeer) {
		t.Errorf("joining with a placeholder: %v", err)
	}
	if err := setPeerURLs(g, 5, 7, []string{peerURL("x")}); err != nil {
		t.Fatal(err)
	}
	if err := Join(g, y); err != nil || len(only(t, g).Members) != 2 {
		t.Errorf("joining with the peer URL of the machine: %v", err)
	}
}

// TestThousandObjects backs 1,000 objects of 10 KiB up, and restores them into another cluster.
func TestThousandObjects(t *testing.T) {
	g := newGroup(t, "a")
	for i := range 1000 {
		_, err := store.Ensure(g, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint(i)}, Data: map[string]string{"x": strings.Repeat("x", 10<<10)},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	versions := g.Versions()
	f, err := database.Write(versions, database.Membership{
		Members: []database.Member{{ID: 1, Name: "a"}}, Term: 2, Index: 1, Version: "3.6.0", Versioned: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	packed := databasetest.Pack(t, databasetest.Restore(t, databasetest.Snapshot(t, f.Reader()), 1000))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	other := newGroup(t)
	x := boot(t, other, "x", "x")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	d, err := database.ReadDirectory(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	read := time.Since(began)
	if err := Refound(other, x, d); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	kept := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d bytes packed, read in %s, restored in %s; %d bytes allocated, %d more in use", len(packed), read, took,
		after.TotalAlloc-before.TotalAlloc, kept)
	if _, bytes := other.Size(); kept > 2*int64(bytes) {
		t.Errorf("%d bytes are in use for objects of %d bytes", kept, bytes)
	}
	want, _ := g.List(store.Resource{Resource: "configmaps"}, "", store.Selector{})
	got, _ := other.List(store.Resource{Resource: "configmaps"}, "", store.Selector{})
	if len(got) != 1000 {
		t.Fatalf("%d objects are restored", len(got))
	}
	for i := range want {
		if !bytes.Equal(want[i].Raw(), got[i].Raw()) {
			t.Fatalf("%s differs", want[i].Key)
		}
	}
}
