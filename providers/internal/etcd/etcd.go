package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
)

const (
	// DefaultDialTimeout bounds connecting to a member.
	DefaultDialTimeout = 10 * time.Second
	// DefaultCallTimeout bounds a call, including connecting.
	DefaultCallTimeout = 15 * time.Second
	// idleTimeout is how long a connection is kept after the last call. A reconcile makes its calls in a row. An idle connection
	// would cost 0.7 MiB here and as much in the API server, more than everything else that is kept of a small cluster.
	idleTimeout = time.Second
	// maxMembers, maxResponse and maxHeaders bound the responses of members. etcd recommends at most 7 members.
	maxMembers  = 100
	maxResponse = 1 << 20
	maxHeaders  = 64 << 10
)

// Options configure a Cluster.
type Options struct {
	// Dial connects to the client port of the member on a Node.
	Dial func(ctx context.Context, node string) (net.Conn, error)
	// Identity provides the certificates for TLS.
	Identity *Identity
	// DialTimeout defaults to DefaultDialTimeout.
	DialTimeout time.Duration
	// CallTimeout defaults to DefaultCallTimeout.
	CallTimeout time.Duration
	// CheckLeader returns an error if this process must no longer change the cluster. Nil: it always may.
	CheckLeader func() error
	// Clock measures how long a snapshot makes no progress. Nil: the real one.
	Clock clock.WithDelayedExecution
}

// Cluster is the etcd cluster of one workload cluster. It is safe for concurrent use.
type Cluster struct {
	options Options

	mu     sync.Mutex
	closed bool
	conns  map[string]*connection
}

// Member is an entry in the list of members.
type Member struct {
	ID uint64
	// Name is the name of its Node, empty if it was added but has not started yet.
	Name       string
	PeerURLs   []string
	ClientURLs []string
	// IsLearner is true if the member does not vote yet.
	IsLearner bool
}

// View is the state of the cluster according to one member, which may lag behind the others.
type View struct {
	// ID is the ID of the queried member.
	ID        uint64
	ClusterID uint64
	// LeaderID is never 0.
	LeaderID uint64
	// Version is the version of etcd that the queried member reports. It is not validated, and empty if it reports none.
	Version string
	// Members are sorted by ID.
	Members []Member
	// DatabaseSize is the size of the queried member's database file in bytes.
	DatabaseSize int64
	// RaftIndex is the index of the latest entry in the queried member's log. RaftTerm is the term of its election.
	RaftIndex, RaftTerm uint64
	// Alarms are the alarms of the queried member, for example NOSPACE.
	Alarms []string
}

// ByName returns the member with this name, which must not be empty.
func ByName(members []Member, name string) (Member, bool) {
	i := slices.IndexFunc(members, func(m Member) bool { return m.Name == name && name != "" })
	if i < 0 {
		return Member{}, false
	}
	return members[i], true
}

// ByID returns the member with this ID.
func ByID(members []Member, id uint64) (Member, bool) {
	i := slices.IndexFunc(members, func(m Member) bool { return m.ID == id })
	if i < 0 {
		return Member{}, false
	}
	return members[i], true
}

// New returns a Cluster without connections. Close it after use.
func New(o Options) *Cluster {
	if o.DialTimeout == 0 {
		o.DialTimeout = DefaultDialTimeout
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = DefaultCallTimeout
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Cluster{options: o, conns: map[string]*connection{}}
}

// View queries the member on a Node for its own state. That is cheap and works without a quorum. The request for alarms
// requires a quorum, and is sent only if the member reports errors.
func (c *Cluster) View(ctx context.Context, node string) (View, error) {
	var v View
	err := c.call(ctx, node, "querying", func(ctx context.Context, conn *grpc.ClientConn) error {
		maintenance := etcdserverpb.NewMaintenanceClient(conn)
		state, err := maintenance.Status(ctx, &etcdserverpb.StatusRequest{})
		if err != nil {
			return err
		}
		if state.Leader == 0 {
			return errors.New("it has no leader")
		}
		list, err := etcdserverpb.NewClusterClient(conn).MemberList(ctx, &etcdserverpb.MemberListRequest{})
		if err != nil {
			return err
		}
		all, err := members(list.Members)
		if err != nil {
			return err
		}
		v = View{
			ID: identify(state.Header, node, all), ClusterID: state.Header.GetClusterId(), LeaderID: state.Leader,
			Version: state.Version, Members: all,
			DatabaseSize: state.DbSize, RaftIndex: state.RaftIndex, RaftTerm: state.RaftTerm,
		}
		if len(state.Errors) == 0 {
			return nil
		}
		v.Alarms, err = alarms(ctx, maintenance, v.ID)
		return err
	})
	return v, err
}

// identify returns the ID of the queried member. The in-memory provider of Cluster API v1.7 responds without a header; then it
// is the ID of the member with the name of the Node, or 0 if there is none.
func identify(header *etcdserverpb.ResponseHeader, node string, all []Member) uint64 {
	if id := header.GetMemberId(); id != 0 {
		return id
	}
	named, _ := ByName(all, node)
	return named.ID
}

func alarms(ctx context.Context, maintenance etcdserverpb.MaintenanceClient, id uint64) ([]string, error) {
	response, err := maintenance.Alarm(ctx, &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_GET, MemberID: id})
	if err != nil {
		return nil, err
	}
	var all []string
	for _, a := range response.Alarms {
		if a.MemberID == id && a.Alarm != etcdserverpb.AlarmType_NONE {
			all = append(all, a.Alarm.String())
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Members returns the list of members that a quorum agrees on, sorted by ID, from the member on a Node.
func (c *Cluster) Members(ctx context.Context, node string) ([]Member, error) {
	var all []Member
	err := c.call(ctx, node, "listing members from", func(ctx context.Context, conn *grpc.ClientConn) error {
		list, err := etcdserverpb.NewClusterClient(conn).MemberList(ctx, &etcdserverpb.MemberListRequest{Linearizable: true})
		if err != nil {
			return err
		}
		all, err = members(list.Members)
		return err
	})
	return all, err
}

// members converts and validates a list of members: their names are used in conditions and events of the management cluster.
func members(list []*etcdserverpb.Member) ([]Member, error) {
	if len(list) > maxMembers {
		return nil, fmt.Errorf("it has %d members, more than %d", len(list), maxMembers)
	}
	all := make([]Member, 0, len(list))
	for _, m := range list {
		if m.Name != "" && len(validation.IsDNS1123Subdomain(m.Name)) > 0 {
			return nil, fmt.Errorf("it has member %x, whose name is not a valid name of a Node", m.ID)
		}
		all = append(all, Member{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, IsLearner: m.IsLearner})
	}
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// MoveLeader makes the member on a Node move its leadership to the member with this ID. A member that is not the leader is not
// an error.
func (c *Cluster) MoveLeader(ctx context.Context, node string, to uint64) error {
	return c.change(ctx, node, "moving the leadership from", func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := etcdserverpb.NewMaintenanceClient(conn).MoveLeader(ctx, &etcdserverpb.MoveLeaderRequest{TargetID: to})
		if errors.Is(rpctypes.Error(err), rpctypes.ErrNotLeader) {
			return nil
		}
		return err
	})
}

// RemoveMember removes the member with this ID, through the member on a Node. A member that does not exist is not an error.
func (c *Cluster) RemoveMember(ctx context.Context, node string, id uint64) error {
	return c.change(ctx, node, "removing a member through", func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := etcdserverpb.NewClusterClient(conn).MemberRemove(ctx, &etcdserverpb.MemberRemoveRequest{ID: id})
		if errors.Is(rpctypes.Error(err), rpctypes.ErrMemberNotFound) {
			return nil
		}
		return err
	})
}

// change is call for what changes the cluster.
func (c *Cluster) change(ctx context.Context, node, what string, do func(context.Context, *grpc.ClientConn) error) error {
	if c.options.CheckLeader == nil {
		return c.call(ctx, node, what, do)
	}
	return c.call(ctx, node, what, func(ctx context.Context, conn *grpc.ClientConn) error {
		if err := c.options.CheckLeader(); err != nil {
			return err
		}
		return do(ctx, conn)
	})
}

// call calls the member on a Node, and closes the connection if there is no response. A connection from an earlier call may
// have been lost silently, for example in a firewall, so there is another attempt over a new connection. All calls are
// idempotent.
func (c *Cluster) call(ctx context.Context, node, what string, do func(context.Context, *grpc.ClientConn) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.CallTimeout)
	defer cancel()
	for {
		conn, err := c.connection(node)
		if err != nil {
			return err
		}
		kept := conn.proven.Load()
		if err = c.attempt(ctx, kept, func(ctx context.Context) error { return do(ctx, conn.ClientConn) }); err == nil {
			conn.proven.Store(true)
			return nil
		}
		unreachable := status.Code(err) == codes.Unavailable || status.Code(err) == codes.DeadlineExceeded
		if unreachable {
			c.drop(node, conn)
		}
		if !unreachable || !kept || ctx.Err() != nil {
			return fmt.Errorf("%s the etcd member on Node %s: %w", what, node, err)
		}
	}
}

// attempt calls do, and leaves time for another attempt if the connection is from an earlier call.
func (c *Cluster) attempt(ctx context.Context, kept bool, do func(context.Context) error) error {
	if kept {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.options.CallTimeout/3)
		defer cancel()
	}
	return do(ctx)
}

// connection is a connection to a member.
type connection struct {
	*grpc.ClientConn
	// proven is true if the member has responded over it.
	proven atomic.Bool
}

// connection returns the connection to the member on a Node, which is established by the first call.
func (c *Cluster) connection(node string) (*connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.New("the connection to the workload cluster was lost")
	}
	if conn := c.conns[node]; conn != nil {
		return conn, nil
	}
	conn, err := c.connect(node)
	if err != nil {
		return nil, err
	}
	c.conns[node] = &connection{ClientConn: conn}
	return c.conns[node], nil
}

// connect returns a new connection to the member on a Node, which is established by the first call.
func (c *Cluster) connect(node string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///etcd-"+node,
		grpc.WithTransportCredentials(credentials.NewTLS(c.options.Identity.config(node))),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return c.dial(ctx, node) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxResponse)),
		grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithIdleTimeout(idleTimeout),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: c.options.DialTimeout}),
	)
	if err != nil {
		return nil, fmt.Errorf("connecting to the etcd member on Node %s: %w", node, err)
	}
	return conn, nil
}

// drop closes a connection.
func (c *Cluster) drop(node string, conn *connection) {
	c.mu.Lock()
	if c.conns[node] == conn {
		delete(c.conns, node)
	}
	c.mu.Unlock()
	_ = conn.Close() // It is no longer used.
}

// Keep closes the connections to members on all other Nodes.
func (c *Cluster) Keep(nodes []string) {
	c.end(func(node string) bool { return !slices.Contains(nodes, node) })
}

// Close closes all connections, and prevents new ones.
func (c *Cluster) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.end(func(string) bool { return true })
}

func (c *Cluster) end(which func(node string) bool) {
	var ended []*connection
	c.mu.Lock()
	for node, conn := range c.conns {
		if which(node) {
			ended = append(ended, conn)
			delete(c.conns, node)
		}
	}
	c.mu.Unlock()
	for _, conn := range ended {
		_ = conn.Close() // It is no longer used.
	}
}
