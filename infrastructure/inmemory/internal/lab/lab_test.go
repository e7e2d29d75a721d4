package lab

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/apiserver"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/cloud"
)

func newLab(t *testing.T) *Lab {
	t.Helper()
	l := &Lab{Cloud: cloud.New(cloud.Options{}), Server: apiserver.New(apiserver.Options{}), Host: "127.0.0.1"}
	t.Cleanup(func() {
		if err := l.Server.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

var key = types.NamespacedName{Namespace: "default", Name: "test"}

func newCluster(uid types.UID) *inmemoryv1.InMemoryCluster {
	return &inmemoryv1.InMemoryCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "infra", UID: uid}}
}

func TestOpenChoosesOnce(t *testing.T) {
	l, c := newLab(t), newCluster("uid")
	group, endpoint, err := l.Open(c, key)
	if err != nil {
		t.Fatal(err)
	}
	chosen := c.Spec.ControlPlaneEndpoint
	if chosen.Host != "127.0.0.1" || chosen.Port < firstPort || chosen.Port >= lastPort || chosen.Port != endpoint.Port() {
		t.Errorf("endpoint %v at %s, want a port of the range on the lab's host", chosen, endpoint.Address())
	}
	for reason, again := range map[string]*inmemoryv1.InMemoryCluster{"the same object": c, "one whose endpoint was not saved": newCluster("uid")} {
		g, e, err := l.Open(again, key)
		if err != nil || g != group || e != endpoint {
			t.Errorf("%s: group or endpoint is another one, err = %v", reason, err)
		}
		if diff := cmp.Diff(chosen, again.Spec.ControlPlaneEndpoint); diff != "" {
			t.Errorf("%s, -want +got:\n%s", reason, diff)
		}
	}
}

func TestOpenAfterRestart(t *testing.T) {
	first, c := newLab(t), newCluster("uid")
	if _, _, err := first.Open(c, key); err != nil {
		t.Fatal(err)
	}
	want := c.Spec.ControlPlaneEndpoint
	if err := first.Server.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := newLab(t).Open(c, key); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, c.Spec.ControlPlaneEndpoint); diff != "" {
		t.Errorf("a cluster stays where it was, -want +got:\n%s", diff)
	}
}

func TestPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // the test is over
	c := newCluster("uid")
	c.Spec.ControlPlaneEndpoint = endpointAt(taken.Addr())
	l := newLab(t)
	_, _, err = l.Open(c, key)
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("err = %v, want that the port is in use", err)
	}
	for _, part := range []string{"default/test", taken.Addr().String(), "InMemoryCluster default/infra", "spec.controlPlaneEndpoint"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.Open(c, key); err != nil {
		t.Errorf("it opens once the port is free: %v", err)
	}
}

func TestOpenForAnotherOwner(t *testing.T) {
	l, old := newLab(t), newCluster("old")
	before, _, err := l.Open(old, key)
	if err != nil {
		t.Fatal(err)
	}
	made := newCluster("new")
	made.Spec = old.Spec
	after, endpoint, err := l.Open(made, key)
	if err != nil {
		t.Fatalf("what an earlier owner of the name left is in the way: %v", err)
	}
	if after == before || endpoint.Group() != after {
		t.Error("a new InMemoryCluster is a new workload cluster")
	}
}

func TestClose(t *testing.T) {
	l, c := newLab(t), newCluster("uid")
	_, endpoint, err := l.Open(c, key)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Close(key); err != nil {
			t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", endpoint.Address())
	if err != nil {
		t.Fatalf("the port is not free: %v", err)
	}
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	if groups := l.Cloud.Groups(); len(groups) != 0 {
		t.Errorf("groups %v are left", groups)
	}
}

func endpointAt(a net.Addr) inmemoryv1.APIEndpoint {
	tcp := a.(*net.TCPAddr)
	return inmemoryv1.APIEndpoint{Host: tcp.IP.String(), Port: tcp.Port}
}

func TestWhatIsGoneIsForgotten(t *testing.T) {
	directory := t.TempDir()
	start := func() *Lab {
		l := newLab(t)
		l.Cloud = cloud.New(cloud.Options{Directory: directory})
		return l
	}
	second := types.NamespacedName{Namespace: "default", Name: "second"}
	l := start()
	for cluster, uid := range map[types.NamespacedName]types.UID{key: "one", second: "two"} {
		c := newCluster(uid)
		if _, _, err := l.Open(c, cluster); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(l.Drop("nobody"), l.Drop("one"), l.Drop("one")); err != nil {
		t.Fatal(err)
	}
	if _, ok := l.Server.Endpoint(key); ok {
		t.Error("the API server of what was dropped still listens")
	}
	if diff := cmp.Diff([]types.NamespacedName{second}, l.Cloud.Groups()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := l.Cloud.Close(); err != nil {
		t.Fatal(err)
	}
	owners := func(uids ...types.UID) func() (map[types.UID]bool, error) {
		return func() (map[types.UID]bool, error) {
			all := map[types.UID]bool{}
			for _, uid := range uids {
				all[uid] = true
			}
			return all, nil
		}
	}
	for _, step := range []struct {
		reason string
		living func() (map[types.UID]bool, error)
		left   int
	}{
		{"who cannot be asked is not taken for gone", func() (map[types.UID]bool, error) { return nil, errors.New("no answer") }, 1},
		{"the owner lives", owners("two"), 1},
		{"the owner is gone", owners("one"), 0},
		{"there is nothing to ask for", func() (map[types.UID]bool, error) { t.Error("it is asked"); return nil, nil }, 0},
	} {
		l := start()
		_ = l.Sweep(step.living) // What it says is not what counts here.
		left, err := l.Cloud.Leftovers()
		if err != nil || len(left) != step.left {
			t.Errorf("%s: %d journals are left, want %d; %v", step.reason, len(left), step.left, err)
		}
	}
}
