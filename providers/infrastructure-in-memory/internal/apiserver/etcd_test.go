package apiserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd"
)

// joinMembers adds etcd members on cp-0, cp-1, ... to the cluster.
func joinMembers(t *testing.T, c *testCluster, n int) {
	t.Helper()
	for i := range n {
		node := fmt.Sprintf("cp-%d", i)
		runEtcd(t, c, node)
		c.endpoint.StartEtcd(node, c.etcdCA.pair(t, "etcd-"+node))
	}
}

// runEtcd creates a machine with etcd.
func runEtcd(t testing.TB, c *testCluster, node string) {
	t.Helper()
	if _, err := c.group.EnsureMachine(machines.Spec{Name: node, UID: types.UID(node), ControlPlane: true}); err != nil {
		t.Fatal(err)
	}
	if err := etcd.Restore(c.group, etcd.Machine{Name: node, UID: types.UID(node)}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Ensure(c.group, staticPod("etcd", node)); err != nil {
		t.Fatal(err)
	}
}

// etcdClient returns a client for the member on a node at an address. The endpoint's name is not resolved, but used as server
// name.
func (c *testCluster) etcdClient(t *testing.T, address, node string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{"etcd-" + node},
		DialTimeout: 20 * time.Second,
		Logger:      zap.NewNop(),
		TLS: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: c.etcdCA.pool(),
			Certificates: []tls.Certificate{c.etcdCA.pair(t, "apiserver-etcd-client")},
		},
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func names(t *testing.T, client *clientv3.Client) []string {
	t.Helper()
	list, err := client.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range list.Members {
		seen[m.Name] = true
	}
	var sorted []string
	for i := range 5 {
		if name := fmt.Sprintf("cp-%d", i); seen[name] {
			sorted = append(sorted, name)
		}
	}
	return sorted
}

func TestEtcdIsManaged(t *testing.T) {
	c := newTestCluster(t)
	ctx := t.Context()
	joinMembers(t, c, 3)
	first := c.etcdClient(t, c.endpoint.Address(), "cp-0")
	second := c.etcdClient(t, c.endpoint.Address(), "cp-1")

	if diff := cmp.Diff([]string{"cp-0", "cp-1", "cp-2"}, names(t, first)); diff != "" {
		t.Error(diff)
	}
	before, err := first.Status(ctx, "etcd-cp-0")
	if err != nil || before.Leader != before.Header.MemberId {
		t.Fatalf("the first member must be the leader: %+v, %v", before, err)
	}
	other, err := second.Status(ctx, "etcd-cp-1")
	if err != nil || other.Leader != before.Leader || other.Header.MemberId == before.Leader ||
		other.Header.ClusterId != before.Header.ClusterId {
		t.Fatalf("members must agree on leader and cluster: %+v, %v", other, err)
	}
	if _, err := second.MoveLeader(ctx, other.Header.MemberId); err == nil {
		t.Error("only the leader can transfer leadership")
	}
	if _, err := first.MoveLeader(ctx, other.Header.MemberId); err != nil {
		t.Fatal(err)
	}
	after, err := first.Status(ctx, "etcd-cp-0")
	if err != nil || after.Leader != other.Header.MemberId || after.RaftTerm <= before.RaftTerm {
		t.Errorf("the other member must be the leader in a new term: %+v, %v", after, err)
	}
	if alarms, err := first.AlarmList(ctx); err != nil || len(alarms.Alarms) != 0 {
		t.Errorf("listing alarms: %v, %v", alarms, err)
	}
	if _, err := first.Get(ctx, "health"); err != nil {
		t.Errorf("reading, as a health check: %v", err)
	}
	if _, err := second.MemberRemove(ctx, before.Header.MemberId); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"cp-1", "cp-2"}, names(t, second)); diff != "" {
		t.Error(diff)
	}
	removed, err := c.client(t).CoreV1().Pods("kube-system").Get(ctx, "etcd-cp-0", metav1.GetOptions{})
	if _, found := removed.Annotations[etcd.MemberRemovedAnnotation]; err != nil || !found {
		t.Errorf("the Pod must show that its member was removed: %v, %v", removed.Annotations, err)
	}
	if _, err := second.MemberRemove(ctx, before.Header.MemberId); !errors.Is(err, rpctypes.ErrMemberNotFound) {
		t.Errorf("removing a member again: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := first.MemberList(short); err == nil {
		t.Error("a removed member responded")
	}
}

func TestEtcdWithoutQuorum(t *testing.T) {
	c := newTestCluster(t)
	joinMembers(t, c, 3)
	client := c.etcdClient(t, c.endpoint.Address(), "cp-0")
	c.endpoint.StartServer("cp-1", "v1.31.2")
	for _, test := range []struct {
		reason string
		dead   []string
		quorum bool
	}{
		{"all members are alive", nil, true},
		{"two of three are enough", []string{"cp-2"}, true},
		{"one of three is not", []string{"cp-1", "cp-2"}, false},
	} {
		if err := c.group.SetFaults(faults.Faults{DeadMachines: test.dead}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if !test.quorum {
			ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
		}
		_, err := client.MemberList(ctx)
		cancel()
		if (err == nil) != test.quorum {
			t.Errorf("%s: listing members: %v", test.reason, err)
		}
		api := c.client(t).CoreV1().RESTClient().Get().Resource("nodes").Do(t.Context()).Error()
		if (api == nil) != test.quorum {
			t.Errorf("%s: listing nodes: %v", test.reason, api)
		}
	}
}

// TestDeletedMachinesCostTheQuorum deletes machines without removing their members. Without quorum, the API fails.
func TestDeletedMachinesCostTheQuorum(t *testing.T) {
	c := newTestCluster(t)
	joinMembers(t, c, 3)
	get := func(path string) error {
		return c.client(t).CoreV1().RESTClient().Get().AbsPath(path).Do(t.Context()).Error()
	}
	for _, step := range []struct {
		reason  string
		machine string
		serves  bool
	}{
		{"two of three are enough", "cp-2", true},
		{"one of three is not", "cp-1", false},
	} {
		if err := c.group.DeleteMachine(step.machine); err != nil {
			t.Fatal(err)
		}
		c.endpoint.StopEtcd(step.machine)
		for path, needsEtcd := range map[string]bool{
			"/api/v1/nodes": true, "/healthz": true, "/readyz/etcd": true, "/version": false, "/": false, "/api/v1": false,
		} {
			if err := get(path); (err == nil) != (step.serves || !needsEtcd) {
				t.Errorf("%s: GET %s: %v", step.reason, path, err)
			} else if err != nil && !strings.Contains(err.Error(), "etcdserver: request timed out") {
				t.Errorf("%s: GET %s: %v, want a timeout of etcd", step.reason, path, err)
			}
		}
	}
	_, err := store.Get[corev1.Node](c.group, "", "made-without-quorum")
	if !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "made-without-quorum"}}
	if _, err := c.client(t).CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err == nil {
		t.Error("a write without quorum succeeded")
	}
}

func TestEtcdRequiresCertificatesOfItsCA(t *testing.T) {
	c := newTestCluster(t)
	joinMembers(t, c, 1)
	for _, test := range []struct {
		reason     string
		serverName string
		by         *testCA
		protocol   string
	}{
		{"a certificate of the etcd CA", "etcd-cp-0", c.etcdCA, "h2"},
		{"a certificate of the cluster CA", "etcd-cp-0", c.ca, ""},
		{"another name is for the API server", "localhost", c.ca, "h2"},
	} {
		connection, err := tls.Dial("tcp", c.endpoint.Address(), &tls.Config{
			ServerName: test.serverName, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12,
			InsecureSkipVerify: true, // The test is about the server.
			Certificates:       []tls.Certificate{test.by.pair(t, "client")},
		})
		got := ""
		if err == nil {
			// With TLS 1.3, a read returns the rejection of a client, or HTTP/2 settings if it is accepted.
			var b [1]byte
			if _, err = connection.Read(b[:]); err == nil {
				got = connection.ConnectionState().NegotiatedProtocol
			}
			_ = connection.Close()
		}
		if got != test.protocol {
			t.Errorf("%s: protocol %q, want %q (%v)", test.reason, got, test.protocol, err)
		}
	}
}

func TestEtcdThroughPortForward(t *testing.T) {
	c := newTestCluster(t)
	joinMembers(t, c, 1)
	url := c.client(t).CoreV1().RESTClient().Post().Resource("pods").Namespace("kube-system").Name("etcd-cp-0").
		SubResource("portforward").URL()

	for name, dialer := range map[string]func() (httpstream.Dialer, error){
		"SPDY": func() (httpstream.Dialer, error) { return spdyDialer(t, c, url) },
		"WebSocket": func() (httpstream.Dialer, error) {
			return portforward.NewSPDYOverWebsocketDialerForStreaming(url, c.admin(t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := dialer()
			if err != nil {
				t.Fatal(err)
			}
			stop, ready := make(chan struct{}), make(chan struct{})
			forwarder, err := portforward.NewOnAddressesForStreaming(d, []string{"127.0.0.1"}, []string{"0:2379"}, stop, ready, io.Discard,
				io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- forwarder.ForwardPorts() }()
			select {
			case <-ready:
			case err := <-done:
				t.Fatal(err)
			}
			ports, err := forwarder.GetPorts()
			if err != nil {
				t.Fatal(err)
			}
			for range 3 { // Each client has its own connection.
				client := c.etcdClient(t, fmt.Sprintf("127.0.0.1:%d", ports[0].Local), "cp-0")
				if diff := cmp.Diff([]string{"cp-0"}, names(t, client)); diff != "" {
					t.Error(diff)
				}
			}
			close(stop)
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

func spdyDialer(t *testing.T, c *testCluster, url *url.URL) (httpstream.Dialer, error) {
	t.Helper()
	transport, upgrader, err := spdy.RoundTripperFor(c.admin(t))
	if err != nil {
		return nil, err
	}
	return spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url), nil
}
