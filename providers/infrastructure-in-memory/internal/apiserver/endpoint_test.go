package apiserver

import (
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

func TestEndpointServesOnlyWithServers(t *testing.T) {
	c := newTestCluster(t)
	ready := func() error {
		transport, err := rest.TransportFor(c.admin(t))
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&http.Client{Transport: transport}).Get("https://" + c.endpoint.Address() + "/readyz")
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
	for _, step := range []struct {
		reason string
		do     func()
		serves bool
	}{
		{"one server", func() {}, true},
		{"two servers", func() { c.endpoint.StartServer("cp-1", "v1.31.2") }, true},
		{"one of them stops", func() { c.endpoint.StopServer("cp-0") }, true},
		{"the last one stops", func() { c.endpoint.StopServer("cp-1") }, false},
		{"a new one starts", func() { c.endpoint.StartServer("cp-2", "v1.31.2") }, true},
	} {
		step.do()
		if err := ready(); (err == nil) != step.serves {
			t.Errorf("%s: %v", step.reason, err)
		}
	}
}

// TestVersionWhileUpgrading checks that the version is that of the oldest living machine.
func TestVersionWhileUpgrading(t *testing.T) {
	c := newTestCluster(t)
	start := c.group.Now().Add(time.Hour)
	begin := func(machine, version string, at time.Time) {
		t.Helper()
		if _, err := c.group.EnsureMachine(machines.Spec{Name: machine, UID: types.UID(machine), Created: at}); err != nil {
			t.Fatal(err)
		}
		c.endpoint.StartServer(machine, version)
	}
	die := func(machines ...string) {
		t.Helper()
		if err := c.group.SetFaults(faults.Faults{DeadMachines: machines}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		reason string
		do     func()
		want   string
	}{
		{"one machine", func() {}, "v1.31.2"},
		{"a new one joins", func() { begin("cp-n", "v1.32.0", start.Add(time.Minute)) }, "v1.31.2"},
		{"another one joins, and is registered before the first after a restart",
			func() { begin("cp-a", "v1.32.1", start.Add(2*time.Minute)) }, "v1.31.2"},
		{"the old one loses power", func() { die("cp-0") }, "v1.32.0"},
		{"the old one has power again", func() { die() }, "v1.31.2"},
		{"the old one is deleted", func() { c.endpoint.StopServer("cp-0") }, "v1.32.0"},
		{"all are dead", func() { die("cp-a", "cp-n") }, ""},
	} {
		step.do()
		if got := c.endpoint.Version(); got != step.want {
			t.Errorf("%s: the version is %q, want %q", step.reason, got, step.want)
		}
	}
}

func TestEndpointKnowsItsCertificates(t *testing.T) {
	c := newTestCluster(t)
	other, err := c.cloud.EnsureGroup(types.NamespacedName{Namespace: "default", Name: "fresh"}, "f")
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := c.server.Open(other, "127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	if fresh.HasCredentials() || !c.endpoint.HasCredentials() {
		t.Error("HasCredentials is false after SetCredentials")
	}
	joinMembers(t, c, 1)
	if !c.endpoint.HasEtcd("cp-0") || c.endpoint.HasEtcd("cp-1") {
		t.Error("HasEtcd is wrong after StartEtcd")
	}
	c.endpoint.StopEtcd("cp-0")
	if c.endpoint.HasEtcd("cp-0") {
		t.Error("HasEtcd is true after StopEtcd")
	}
}

func TestEndpointIsReopened(t *testing.T) {
	c := newTestCluster(t)
	watching, err := c.client(t).CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	port := c.endpoint.Port()
	if _, err := c.server.Open(c.group, "127.0.0.1", 1); err == nil || !strings.Contains(err.Error(), "close it first") {
		t.Errorf("opening at another port: %v", err)
	}
	if err := c.endpoint.Close(); err != nil {
		t.Fatal(err)
	}
	for range watching.ResultChan() { // It ends when the endpoint is closed.
	}
	if _, found := c.server.Endpoint(c.group.Key()); found {
		t.Error("a closed endpoint was found")
	}
	again, err := c.server.Open(c.group, "127.0.0.1", port)
	if err != nil {
		t.Fatal(err)
	}
	if again.Port() != port || again == c.endpoint {
		t.Errorf("reopened at port %d, want %d", port, again.Port())
	}
	if same, err := c.server.Open(c.group, "127.0.0.1", port); err != nil || same != again {
		t.Errorf("opening again: %v", err)
	}
	other, err := c.cloud.EnsureGroup(types.NamespacedName{Namespace: "default", Name: "other"}, "o")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.server.Open(other, "127.0.0.1", port); err == nil {
		t.Error("a port in use must be an error")
	}
	want := map[types.NamespacedName]string{c.group.Key(): again.Address()}
	if diff := cmp.Diff(want, c.server.Addresses()); diff != "" {
		t.Error(diff)
	}
}

func TestEndpointsAreSeparate(t *testing.T) {
	c := newTestCluster(t)
	other := addTestCluster(t, c.cloud, c.server, types.NamespacedName{Namespace: "x", Name: "other"}, newTestCA(t, "other-ca"),
		newTestCA(t, "other-etcd"))
	if _, err := store.Ensure(c.group, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}); err != nil {
		t.Fatal(err)
	}
	nodes, err := other.client(t).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 0 {
		t.Errorf("a cluster must have its own objects only: %v, %v", nodes, err)
	}
}

func TestCredentialsAreReplaced(t *testing.T) {
	c := newTestCluster(t)
	old := c.client(t)
	if _, err := old.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	next := newTestCA(t, "next-ca")
	c.endpoint.SetCredentials(Credentials{Serving: next.pair(t, "kube-apiserver"), ClientCAs: next.pool(), EtcdClientCAs: c.etcdCA.pool()})
	if _, err := old.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("on an open connection, a client must be authenticated with the new credentials")
	}
	connection, err := tls.Dial("tcp", c.endpoint.Address(),
		&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: next.pool(), ServerName: "localhost"})
	if err != nil {
		t.Fatalf("a new connection must get the new certificate: %v", err)
	}
	if err := connection.Close(); err != nil {
		t.Error(err)
	}
}

// TestStoppedServerAnswersNothing: a request that arrives while its API server stops fails, and is not answered with what another one trusts.
func TestStoppedServerAnswersNothing(t *testing.T) {
	c := newTestCluster(t)
	next := newTestCA(t, "next-ca")
	c.endpoint.SetServerCredentials("cp-0", Credentials{Serving: next.pair(t, "kube-apiserver"), ClientCAs: next.pool(), EtcdClientCAs: c.etcdCA.pool()})
	config := c.admin(t)
	config.CAData = next.pem()
	config.CertData, config.KeyData = pemPair(t, next.pair(t, "kubernetes-admin", "system:masters"))
	nodes := clientFor(t, config).CoreV1().Nodes()
	if _, err := nodes.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	c.endpoint.mu.Lock()
	delete(c.endpoint.own, "cp-0") // As in StopServer, before it closes connections.
	c.endpoint.mu.Unlock()
	if _, err := nodes.List(t.Context(), metav1.ListOptions{}); err == nil || apierrors.IsUnauthorized(err) {
		t.Errorf("on the open connection: %v", err)
	}
}

func TestClosedPipes(t *testing.T) {
	c := newTestCluster(t)
	p := newPipes()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.dial(t.Context(), c.endpoint); err == nil {
		t.Error("dialing a closed listener succeeded")
	}
	if _, err := p.Accept(); err == nil || p.Addr() == (net.Addr)(nil) {
		t.Error("a closed listener accepted a connection")
	}
}
