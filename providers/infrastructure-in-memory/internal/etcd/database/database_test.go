package database

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd/database/databasetest"
)

type powered struct{}

func (powered) Dead(string) bool                             { return false }
func (powered) MarkUnreachable(_ *unstructured.Unstructured) {}

func newStore(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(store.Options{
		Clock: clocktesting.NewFakeClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)),
		UIDs:  rand.NewChaCha8([32]byte{}), Names: rand.New(rand.NewPCG(1, 2)),
		Limit: store.DefaultLimit, Power: powered{},
	})
	if err != nil {
		t.Fatal(err)
	}
	create(t, s, store.Namespaces(), "v1", "Namespace", "", "n")
	return s
}

func create(t testing.TB, s *store.Store, r store.Resource, version, kind, namespace, name string) *store.Object {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind}}
	u.SetNamespace(namespace)
	u.SetName(name)
	o, err := s.Create(r, u, store.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func label(t testing.TB, s *store.Store, key store.Key, value string) {
	t.Helper()
	_, err := s.Update(key, store.WriteOptions{}, func(current *store.Object) (*unstructured.Unstructured, error) {
		u := current.Unstructured()
		u.SetLabels(map[string]string{"label": value})
		return u, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, s *store.Store, key store.Key) {
	t.Helper()
	if _, _, err := s.Delete(key, store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func configMap(name string) store.Key {
	return store.Key{Resource: store.Resource{Resource: "configmaps"}, Namespace: "n", Name: name}
}

// membership is that of a cluster with a member.
func membership() Membership {
	return Membership{
		Members: []Member{{ID: 7, Name: "a", PeerURLs: []string{"https://a:2380"}, ClientURLs: []string{"https://a:2379"}}},
		Term:    3, Index: 99, Version: "3.6.0", Versioned: true,
	}
}

// written writes a database to a file with a name, followed by its hash, as a client stores a snapshot.
func written(t testing.TB, v store.Versions, m Membership) string {
	t.Helper()
	f, err := Write(v, m)
	if err != nil {
		t.Fatal(err)
	}
	path := databasetest.Snapshot(t, f.Reader())
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// serve serves a data directory with a real etcd.
func serve(t *testing.T, directory string) *clientv3.Client {
	t.Helper()
	c := embed.NewConfig()
	c.Dir, c.Name, c.ZapLoggerBuilder = directory, "restored", embed.NewZapLoggerBuilder(zap.NewNop())
	local := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	c.ListenClientUrls, c.ListenPeerUrls = []url.URL{local}, []url.URL{local}
	c.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: strings.TrimPrefix(databasetest.Placeholder, "http://")}}
	c.InitialCluster = "restored=" + databasetest.Placeholder
	server, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		t.Fatal("etcd does not start: ", err)
	}
	client := v3client.New(server.Server)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestKeysAreThoseOfKubernetes(t *testing.T) {
	for _, test := range []struct {
		reason, group, resource, namespace, want string
	}{
		{"a resource of the core", "", "configmaps", "n", "/registry/configmaps/n/x"},
		{"Nodes have an older name", "", "nodes", "", "/registry/minions/x"},
		{"Services are below their specs", "", "services", "n", "/registry/services/specs/n/x"},
		{"Endpoints are beside Services", "", "endpoints", "n", "/registry/services/endpoints/n/x"},
		{"groups of Kubernetes are left out", "apps", "deployments", "n", "/registry/deployments/n/x"},
		{"also those with a domain", "rbac.authorization.k8s.io", "clusterroles", "", "/registry/clusterroles/x"},
		{"Ingresses have an older name", "networking.k8s.io", "ingresses", "n", "/registry/ingress/n/x"},
		{"custom resources have their group", "example.com", "books", "n", "/registry/example.com/books/n/x"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			key := store.Key{Resource: store.Resource{Group: test.group, Resource: test.resource}, Namespace: test.namespace, Name: "x"}
			if got := keyOf(key); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// line is an entry in short form: its revision after the first one, its key, and what is special.
func line(e entry, first uint64) string {
	text := fmt.Sprintf("%d %s", int64(e.revision)-int64(first), strings.TrimPrefix(e.key, registry))
	if e.deleted {
		text += " deleted"
	}
	return text
}

func TestEntries(t *testing.T) {
	s := newStore(t)
	first := s.Revision()
	internal := store.Key{Resource: store.Resource{Group: store.Simulation, Resource: "machines"}, Name: "m"}
	for _, test := range []struct {
		reason string
		do     func()
		want   []string
	}{
		{"history begins with a note of the compaction", func() {}, []string{"-1 compact_rev_key", "0 namespaces/n"}},
		{"an object is created", func() { create(t, s, configMap("a").Resource, "v1", "ConfigMap", "n", "a") },
			[]string{"-1 compact_rev_key", "0 namespaces/n", "1 configmaps/n/a"}},
		{"an update is another version", func() { label(t, s, configMap("a"), "x") },
			[]string{"-1 compact_rev_key", "0 namespaces/n", "1 configmaps/n/a", "2 configmaps/n/a"}},
		{"objects of the simulation are only a revision",
			func() { create(t, s, internal.Resource, "simulated.cloud/v1", "Machine", "", "m") },
			[]string{"-1 compact_rev_key", "0 namespaces/n", "1 configmaps/n/a", "2 configmaps/n/a", "3 compact_rev_key"}},
		{"a deletion is a revision", func() { remove(t, s, configMap("a")) },
			[]string{"-1 compact_rev_key", "0 namespaces/n", "1 configmaps/n/a", "2 configmaps/n/a", "3 compact_rev_key", "4 configmaps/n/a deleted"}},
	} {
		test.do()
		var got []string
		for _, e := range entries(s.Versions()) {
			got = append(got, line(e, first))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", test.reason, diff)
		}
	}
}

// TestRealEtcdServesIt restores a database with etcd's own tool, and compares what a real etcd has with what was written.
func TestRealEtcdServesIt(t *testing.T) {
	for _, test := range []struct {
		reason  string
		objects int
		last    func(*store.Store)
	}{
		{"the last change is an object", 3, func(*store.Store) {}},
		{"the last change is a deletion", 3, func(s *store.Store) { remove(t, s, configMap("1")) }},
		{"the last change is not in etcd", 3, func(s *store.Store) {
			create(t, s, store.Resource{Group: store.Simulation, Resource: "machines"}, "simulated.cloud/v1", "Machine", "", "m")
		}},
		{"the history begins later than the objects", 1500, func(s *store.Store) { label(t, s, configMap("1"), "x"); remove(t, s, configMap("2")) }},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := newStore(t)
			for i := range test.objects {
				create(t, s, configMap("").Resource, "v1", "ConfigMap", "n", fmt.Sprint(i))
			}
			label(t, s, configMap("0"), "x")
			test.last(s)
			v := s.Versions()
			path := written(t, v, membership())
			status, err := snapshot.NewV3(zap.NewNop()).Status(path)
			if err != nil || status.Revision != int64(v.Revision) || status.Version != "3.6.0" {
				t.Errorf("etcdutl: %+v, %v; want revision %d", status, err, v.Revision)
			}
			client := serve(t, databasetest.Restore(t, path, 0))
			compare(t, client, s)
			for _, revision := range []uint64{v.Revision, v.Revision - 1, v.Compacted} {
				got, err := client.HashKV(t.Context(), "", int64(revision))
				if err != nil {
					t.Fatal(err)
				}
				want, err := HashKV(v, revision)
				if err != nil || got.Hash != want || got.CompactRevision != int64(v.Compacted) {
					t.Errorf("HashKV at %d of %d: etcd has %d after compaction %d, we have %d after %d, %v", revision, v.Revision, got.Hash,
						got.CompactRevision, want, v.Compacted, err)
				}
			}
		})
	}
}

// compare compares the keys of a real etcd with the objects of a store.
func compare(t *testing.T, client *clientv3.Client, s *store.Store) {
	t.Helper()
	list, err := client.Get(t.Context(), registry, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string]string{}, map[string]string{}
	for _, v := range s.Versions().All {
		key := v.Object.Key
		if o, err := s.Get(key); err == nil && key.Resource.Group != store.Simulation {
			u := o.Unstructured()
			revision := u.GetResourceVersion()
			u.SetResourceVersion("")
			text, err := u.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			want[keyOf(key)] = revision + " " + string(text)
		}
	}
	for _, kv := range list.Kvs {
		got[string(kv.Key)] = fmt.Sprintf("%d %s", kv.ModRevision, kv.Value)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if revision := int64(s.Revision()); list.Header.Revision != revision {
		t.Errorf("etcd's revision is %d, want %d", list.Header.Revision, revision)
	}
}

func TestHashesOfMembersAreEqual(t *testing.T) {
	s := newStore(t)
	one, other := membership(), membership()
	other.Index, other.Term = 5, 6
	first, err := Hash(s.Versions(), one)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Hash(s.Versions(), other)
	if err != nil || first != second {
		t.Errorf("members have hashes %d and %d, %v", first, second, err)
	}
	label(t, s, store.Key{Resource: store.Namespaces(), Name: "n"}, "x")
	if changed, err := Hash(s.Versions(), one); err != nil || changed == first {
		t.Errorf("the hash must change with the objects: %v", err)
	}
}

func TestFilesAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f, err := Write(newStore(t).Versions(), membership())
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) != 0 {
		t.Errorf("an open database has a name: %v, %v", left, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestThousandObjects writes a database of 1,000 objects of 10 KiB: memory is bounded by a transaction.
func TestThousandObjects(t *testing.T) {
	s := newStore(t)
	for i := range 1000 {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"x": strings.Repeat("x", 10<<10)}}}
		u.SetNamespace("n")
		u.SetName(fmt.Sprint(i))
		if _, err := s.Create(configMap("").Resource, u, store.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	v := s.Versions()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	f, err := Write(v, membership())
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("%d bytes in %s, %d bytes allocated, %d more in use", f.Size, took, after.TotalAlloc-before.TotalAlloc,
		int64(after.HeapAlloc)-int64(before.HeapAlloc))
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 2<<20 {
		t.Errorf("%d bytes are in use while a database of %d bytes exists", kept, f.Size)
	}
	began = time.Now()
	if _, err := HashKV(v, v.Revision); err != nil {
		t.Fatal(err)
	}
	t.Logf("HashKV in %s", time.Since(began))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
