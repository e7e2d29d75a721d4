// Package etcdtest is a fake etcd cluster for tests. Each member serves MemberList, MemberRemove, Status, Alarm, MoveLeader and
// Snapshot over TLS, on its own port. Members share their state in memory. A removed member no longer responds, and linearizable
// requests fail without a quorum. There are no keys and values.
package etcdtest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/sdk/pki"
)

// Version is the version of etcd that every Etcd reports.
const Version = "3.5.21"

// ClusterID is the cluster ID of every Etcd.
const ClusterID = 77

// Etcd is a cluster of members.
type Etcd struct {
	// CA signs the certificates of members and clients.
	CA *pki.CA

	clock clock.PassiveClock
	mu    sync.Mutex
	// members by Node, including removed ones.
	members map[string]*member
	leader  uint64
	removed map[uint64]bool
	dials   int
	clients []string
	// anonymous is true if responses have no header.
	anonymous bool
	// filler is added to every list of members.
	filler []*etcdserverpb.Member
	// database is what members send as their snapshot.
	database Database
}

// member is one member: a server.
type member struct {
	etcdserverpb.UnimplementedClusterServer
	etcdserverpb.UnimplementedMaintenanceServer

	etcd    *Etcd
	id      uint64
	node    string
	learner bool
	alarm   etcdserverpb.AlarmType
	address string
	server  *grpc.Server
	stopped bool
}

// New starts an Etcd with a member on each of the Nodes, with the IDs 1, 2, 3 and so on. The first one is the leader. It stops
// when the test ends.
func New(t testing.TB, at clock.PassiveClock, nodes ...string) *Etcd {
	t.Helper()
	ca, err := pki.NewCA("", at.Now())
	if err != nil {
		t.Fatal(err)
	}
	e := &Etcd{CA: ca, clock: at, members: map[string]*member{}, removed: map[uint64]bool{}, leader: 1}
	for i, node := range nodes {
		m := &member{etcd: e, id: uint64(i) + 1, node: node}
		e.members[node] = m
		if err := m.start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.server.Stop() })
	}
	return e
}

// Secret returns the Secret of the CA in the management cluster, with its key.
func (e *Etcd) Secret(t testing.TB, cluster types.NamespacedName) *corev1.Secret {
	t.Helper()
	pair, err := e.CA.PEM()
	if err != nil {
		t.Fatal(err)
	}
	return pki.NewSecret(cluster, pki.EtcdCA, pair.Data(), nil)
}

// start serves with a certificate like that of kubeadm, and requires client certificates.
func (m *member) start() error {
	pair, err := m.etcd.CA.Issue(pki.Request{
		CommonName: m.node, DNSNames: []string{m.node, "localhost"}, Validity: 24 * 365 * time.Hour,
	}, m.etcd.clock.Now())
	if err != nil {
		return err
	}
	own, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return err
	}
	clients := x509.NewCertPool()
	clients.AddCert(m.etcd.CA.Certificate)
	m.server = grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}, Time: m.etcd.clock.Now,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients, VerifyConnection: m.etcd.connected,
	})))
	etcdserverpb.RegisterClusterServer(m.server, m)
	etcdserverpb.RegisterMaintenanceServer(m.server, m)
	listener, err := net.Listen("tcp", orAny(m.address))
	if err != nil {
		return err
	}
	m.address = listener.Addr().String()
	server := m.server
	go server.Serve(listener) //nolint:errcheck // It ends when the server is stopped.
	return nil
}

// orAny returns the previous address of a member, or any address.
func orAny(before string) string {
	if before != "" {
		return before
	}
	return "127.0.0.1:0"
}

func (e *Etcd) connected(state tls.ConnectionState) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clients = append(e.clients, state.PeerCertificates[0].Subject.CommonName)
	return nil
}

// Dial connects to the member on a Node.
func (e *Etcd) Dial(ctx context.Context, node string) (net.Conn, error) {
	e.mu.Lock()
	e.dials++
	m := e.members[node]
	e.mu.Unlock()
	if m == nil {
		return nil, fmt.Errorf("Pod etcd-%s does not exist", node)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", m.address)
}

// Dials returns the number of connections to all members so far.
func (e *Etcd) Dials() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dials
}

// Clients returns the common names of the clients that have connected.
func (e *Etcd) Clients() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.clients)
}

// Anonymous makes members respond without a header, like the in-memory provider of Cluster API v1.7.
func (e *Etcd) Anonymous() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.anonymous = true
}

// Lie adds members to every list, which may be invalid.
func (e *Etcd) Lie(members ...*etcdserverpb.Member) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.filler = members
}

// Stop stops the member on a Node.
func (e *Etcd) Stop(node string) {
	e.mu.Lock()
	e.members[node].stopped = true
	e.mu.Unlock()
	e.members[node].server.Stop()
}

// Restart starts it again, on the same port.
func (e *Etcd) Restart(t testing.TB, node string) {
	t.Helper()
	e.mu.Lock()
	e.members[node].stopped = false
	e.mu.Unlock()
	if err := e.members[node].start(); err != nil {
		t.Fatal(err)
	}
}

// Remove removes the member on a Node.
func (e *Etcd) Remove(node string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.removed[e.members[node].id] = true
}

// Set changes the member on a Node.
func (e *Etcd) Set(node string, learner bool, alarm etcdserverpb.AlarmType) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.members[node].learner, e.members[node].alarm = learner, alarm
}

// Add adds members that have not started and have no name.
func (e *Etcd) Add(count int, learner bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for range count {
		id := uint64(len(e.members)) + 1
		e.members[fmt.Sprint("unstarted ", id)] = &member{etcd: e, id: id, learner: learner}
	}
}

// Lead makes the member with this ID the leader. 0 means that there is none.
func (e *Etcd) Lead(id uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leader = id
}

// Leader returns the ID of the leader.
func (e *Etcd) Leader() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leader
}

// Names returns the names of the members, sorted.
func (e *Etcd) Names() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var names []string
	for _, m := range e.members {
		if !e.removed[m.id] {
			names = append(names, m.node)
		}
	}
	slices.Sort(names)
	return names
}

// ready returns an error if the member cannot respond. With agreed, that requires a quorum. The caller holds the lock.
func (m *member) ready(agreed bool) error {
	if m.etcd.removed[m.id] {
		return rpctypes.ErrGRPCStopped
	}
	voters, running := 0, 0
	for _, other := range m.etcd.members {
		if m.etcd.removed[other.id] || other.learner {
			continue
		}
		voters++
		if other.server != nil && !other.stopped {
			running++
		}
	}
	if agreed && running < voters/2+1 {
		return rpctypes.ErrGRPCNoLeader
	}
	return nil
}

func (m *member) header() *etcdserverpb.ResponseHeader {
	if m.etcd.anonymous {
		return nil
	}
	return &etcdserverpb.ResponseHeader{ClusterId: ClusterID, MemberId: m.id}
}

// MemberList implements etcdserverpb.ClusterServer.
func (m *member) MemberList(_ context.Context, request *etcdserverpb.MemberListRequest) (*etcdserverpb.MemberListResponse, error) {
	m.etcd.mu.Lock()
	defer m.etcd.mu.Unlock()
	if err := m.ready(request.Linearizable); err != nil {
		return nil, err
	}
	r := &etcdserverpb.MemberListResponse{Header: m.header(), Members: slices.Clone(m.etcd.filler)}
	for _, other := range m.etcd.members {
		if !m.etcd.removed[other.id] {
			r.Members = append(r.Members, &etcdserverpb.Member{
				ID: other.id, Name: other.node, IsLearner: other.learner,
				PeerURLs: []string{"https://" + other.node + ":2380"}, ClientURLs: []string{"https://" + other.node + ":2379"},
			})
		}
	}
	return r, nil
}

// MemberRemove implements etcdserverpb.ClusterServer. Unlike etcd, it does not check whether the others have a quorum.
func (m *member) MemberRemove(_ context.Context, r *etcdserverpb.MemberRemoveRequest) (*etcdserverpb.MemberRemoveResponse, error) {
	m.etcd.mu.Lock()
	defer m.etcd.mu.Unlock()
	if err := m.ready(true); err != nil {
		return nil, err
	}
	for _, other := range m.etcd.members {
		if other.id == r.ID && !m.etcd.removed[r.ID] {
			m.etcd.removed[r.ID] = true
			return &etcdserverpb.MemberRemoveResponse{Header: m.header()}, nil
		}
	}
	return nil, rpctypes.ErrGRPCMemberNotFound
}

// Status implements etcdserverpb.MaintenanceServer.
func (m *member) Status(context.Context, *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	m.etcd.mu.Lock()
	defer m.etcd.mu.Unlock()
	if err := m.ready(false); err != nil {
		return nil, err
	}
	r := &etcdserverpb.StatusResponse{Header: m.header(), Leader: m.etcd.leader, Version: Version}
	for _, other := range m.etcd.members { // A member reports the alarms of all.
		if other.alarm != etcdserverpb.AlarmType_NONE {
			r.Errors = append(r.Errors, (&etcdserverpb.AlarmMember{MemberID: other.id, Alarm: other.alarm}).String())
		}
	}
	return r, nil
}

// Alarm implements etcdserverpb.MaintenanceServer. Like etcd, it always lists the alarms of all members.
func (m *member) Alarm(context.Context, *etcdserverpb.AlarmRequest) (*etcdserverpb.AlarmResponse, error) {
	m.etcd.mu.Lock()
	defer m.etcd.mu.Unlock()
	if err := m.ready(true); err != nil {
		return nil, err
	}
	r := &etcdserverpb.AlarmResponse{Header: m.header()}
	for _, other := range m.etcd.members {
		if other.alarm != etcdserverpb.AlarmType_NONE {
			r.Alarms = append(r.Alarms, &etcdserverpb.AlarmMember{MemberID: other.id, Alarm: other.alarm})
		}
	}
	return r, nil
}

// MoveLeader implements etcdserverpb.MaintenanceServer.
func (m *member) MoveLeader(_ context.Context, r *etcdserverpb.MoveLeaderRequest) (*etcdserverpb.MoveLeaderResponse, error) {
	m.etcd.mu.Lock()
	defer m.etcd.mu.Unlock()
	if err := m.ready(true); err != nil {
		return nil, err
	}
	if m.etcd.leader != m.id {
		return nil, rpctypes.ErrGRPCNotLeader
	}
	m.etcd.leader = r.TargetID
	return &etcdserverpb.MoveLeaderResponse{Header: m.header()}, nil
}
