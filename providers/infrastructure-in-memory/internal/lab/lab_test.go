package lab

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
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

func TestOpenChoosesEndpointOnce(t *testing.T) {
	l, c := newLab(t), newCluster("uid")
	group, endpoint, err := l.Open(t.Context(), kinds.OfInMemoryCluster(c), key)
	if err != nil {
		t.Fatal(err)
	}
	chosen := c.Spec.ControlPlaneEndpoint
	if chosen.Host != "127.0.0.1" || !DefaultPorts().contains(chosen.Port) || chosen.Port != endpoint.Port() {
		t.Errorf("endpoint %v at %s, want a port of the range on the lab's host", chosen, endpoint.Address())
	}
	for reason, again := range map[string]*inmemoryv1.InMemoryCluster{"the same object": c, "one whose endpoint was not saved": newCluster("uid")} {
		g, e, err := l.Open(t.Context(), kinds.OfInMemoryCluster(again), key)
		if err != nil || g != group || e != endpoint {
			t.Errorf("%s: group or endpoint changed, err = %v", reason, err)
		}
		if diff := cmp.Diff(chosen, again.Spec.ControlPlaneEndpoint); diff != "" {
			t.Errorf("%s, -want +got:\n%s", reason, diff)
		}
	}
}

func TestOpenAfterRestart(t *testing.T) {
	first, c := newLab(t), newCluster("uid")
	if _, _, err := first.Open(t.Context(), kinds.OfInMemoryCluster(c), key); err != nil {
		t.Fatal(err)
	}
	want := c.Spec.ControlPlaneEndpoint
	if err := first.Server.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := newLab(t).Open(t.Context(), kinds.OfInMemoryCluster(c), key); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, c.Spec.ControlPlaneEndpoint); diff != "" {
		t.Errorf("endpoint after a restart, -want +got:\n%s", diff)
	}
}

func TestPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() // Errors do not matter at the end.
	c := newCluster("uid")
	c.Spec.ControlPlaneEndpoint = endpointAt(taken.Addr())
	l := newLab(t)
	l.Ports = Ports{First: 1024, Last: 65535}
	_, _, err = l.Open(t.Context(), kinds.OfInMemoryCluster(c), key)
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
	if _, _, err := l.Open(t.Context(), kinds.OfInMemoryCluster(c), key); err != nil {
		t.Errorf("opening when the port is free: %v", err)
	}
}

// TestInvalidEndpoints checks that endpoints, which untrusted users write, are only opened within the provider's range.
func TestInvalidEndpoints(t *testing.T) {
	for _, test := range []struct {
		reason  string
		at      inmemoryv1.APIEndpoint
		message string
	}{
		{"all addresses", inmemoryv1.APIEndpoint{Host: "0.0.0.0", Port: 20001}, `host "0.0.0.0"`},
		{"another address, as after a move", inmemoryv1.APIEndpoint{Host: "127.0.0.2", Port: 20001}, `host "127.0.0.2"`},
		{"a name", inmemoryv1.APIEndpoint{Host: "localhost", Port: 20001}, `host "localhost"`},
		{"the port of the manager's webhooks", inmemoryv1.APIEndpoint{Host: "127.0.0.1", Port: 9443}, "port 9443"},
		{"a privileged port", inmemoryv1.APIEndpoint{Host: "127.0.0.1", Port: 443}, "port 443"},
		{"a port below the range", inmemoryv1.APIEndpoint{Host: "127.0.0.1", Port: 19999}, "20000-24000"},
		{"a port above the range", inmemoryv1.APIEndpoint{Port: 24001}, "20000-24000"},
		{"a negative port", inmemoryv1.APIEndpoint{Host: "127.0.0.1", Port: -1}, "port -1"},
	} {
		l, c := newLab(t), newCluster("uid")
		c.Spec.ControlPlaneEndpoint = test.at
		_, _, err := l.Open(t.Context(), kinds.OfInMemoryCluster(c), key)
		if !errors.Is(err, ErrInvalidEndpoint) || !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s: %v", test.reason, err)
		}
		if len(l.Server.Addresses()) != 0 || len(l.Cloud.Groups()) != 0 || c.Spec.ControlPlaneEndpoint != test.at {
			t.Errorf("%s: an endpoint was opened", test.reason)
		}
	}
}

func TestEndpointDoesNotMove(t *testing.T) {
	l, c := newLab(t), newCluster("uid")
	if _, _, err := l.Open(t.Context(), kinds.OfInMemoryCluster(c), key); err != nil {
		t.Fatal(err)
	}
	before := l.Server.Addresses()[key]
	c.Spec.ControlPlaneEndpoint.Port = c.Spec.ControlPlaneEndpoint.Port%1000 + 22000
	if _, _, err := l.Open(t.Context(), kinds.OfInMemoryCluster(c), key); !errors.Is(err, ErrInvalidEndpoint) {
		t.Errorf("opening with another port in spec: %v", err)
	}
	if got := l.Server.Addresses()[key]; got != before {
		t.Errorf("it listens at %s, was at %s", got, before)
	}
}

func TestPortsOfOthers(t *testing.T) {
	l, c := newLab(t), newCluster("uid")
	c.Spec.ControlPlaneEndpoint.Port = 20007
	l.Claims = func(context.Context, kinds.Cluster) (map[int]bool, error) {
		return map[int]bool{20007: true}, nil
	}
	if _, _, err := l.Open(t.Context(), kinds.OfInMemoryCluster(c), key); err == nil || !strings.Contains(err.Error(), "port 20007") || len(l.Server.Addresses()) != 0 {
		t.Errorf("a port that another InMemoryCluster claims: %v", err)
	}
	l.Ports, c.Spec.ControlPlaneEndpoint.Port = Ports{20007, 20007}, 0
	if _, _, err := l.Open(t.Context(), kinds.OfInMemoryCluster(c), key); err == nil || !strings.Contains(err.Error(), "no port of 20007-20007 is free") {
		t.Errorf("no other port is free: %v", err)
	}
	failed := errors.New("unreachable")
	l.Claims = func(context.Context, kinds.Cluster) (map[int]bool, error) { return nil, failed }
	if _, _, err := l.Open(t.Context(), kinds.OfInMemoryCluster(c), key); !errors.Is(err, failed) || len(l.Server.Addresses()) != 0 {
		t.Errorf("claims are unknown: %v", err)
	}
}

func TestParsePorts(t *testing.T) {
	for text, want := range map[string]Ports{
		"20000-24000": {20000, 24000}, "1024-1024": {1024, 1024}, "": {}, "20000": {}, "80-90": {}, "24000-20000": {}, "20000-65536": {}, "a-b": {}, "20000-24000-1": {},
	} {
		got, err := ParsePorts(text)
		if got != want || (err == nil) != (want != Ports{}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestCloseRequiresOwner(t *testing.T) {
	l, mine := newLab(t), newCluster("mine")
	if _, _, err := l.Open(t.Context(), kinds.OfInMemoryCluster(mine), key); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(key, "another UID"); err != nil || len(l.Server.Addresses()) != 1 || len(l.Cloud.Groups()) != 1 {
		t.Errorf("the cluster of another owner was closed: %v, %v", err, l.Cloud.Groups())
	}
}

func TestOpenForAnotherOwner(t *testing.T) {
	l, old := newLab(t), newCluster("old")
	before, _, err := l.Open(t.Context(), kinds.OfInMemoryCluster(old), key)
	if err != nil {
		t.Fatal(err)
	}
	made := newCluster("new")
	made.Spec = old.Spec
	after, endpoint, err := l.Open(t.Context(), kinds.OfInMemoryCluster(made), key)
	if err != nil {
		t.Fatalf("opening a cluster of an earlier owner: %v", err)
	}
	if after == before || endpoint.Group() != after {
		t.Error("a new InMemoryCluster must have a new workload cluster")
	}
}

func TestClose(t *testing.T) {
	l, c := newLab(t), newCluster("uid")
	_, endpoint, err := l.Open(t.Context(), kinds.OfInMemoryCluster(c), key)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Close(key, "uid"); err != nil {
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
		t.Errorf("groups %v still exist", groups)
	}
}

func endpointAt(a net.Addr) inmemoryv1.APIEndpoint {
	tcp := a.(*net.TCPAddr)
	return inmemoryv1.APIEndpoint{Host: tcp.IP.String(), Port: tcp.Port}
}

func TestSweep(t *testing.T) {
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
		if _, _, err := l.Open(t.Context(), kinds.OfInMemoryCluster(c), cluster); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(l.Drop("unknown"), l.Drop("one"), l.Drop("one")); err != nil {
		t.Fatal(err)
	}
	if _, ok := l.Server.Endpoint(key); ok {
		t.Error("the API server of a dropped cluster still listens")
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
		{"owners are unknown", func() (map[types.UID]bool, error) { return nil, errors.New("unreachable") }, 1},
		{"the owner exists", owners("two"), 1},
		{"the owner is gone", owners("one"), 0},
		{"no leftovers", func() (map[types.UID]bool, error) { t.Error("owners must not be listed"); return nil, nil }, 0},
	} {
		l := start()
		_ = l.Sweep(step.living) // The error does not matter here.
		left, err := l.Cloud.Leftovers()
		if err != nil || len(left) != step.left {
			t.Errorf("%s: %d journals remain, want %d; %v", step.reason, len(left), step.left, err)
		}
	}
}
