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
)

const (
	// DefaultDialTimeout is how long connecting to a member may take.
	DefaultDialTimeout = 10 * time.Second
	// DefaultCallTimeout is how long a call may take, connecting included.
	DefaultCallTimeout = 15 * time.Second
	// idleTimeout is how long a connection is kept after the last call. Calls come together, when something happens to a
	// control plane; between times a forwarded connection would cost 0.7 MiB here and as much in the API server, which is
	// more than all else that is kept of a small cluster. When many clusters are made at once, so are their connections.
	idleTimeout = time.Second
	// maxMembers, maxAnswer and maxHeaders bound what a member may answer: etcd recommends at most 7 members.
	maxMembers = 100
	maxAnswer  = 1 << 20
	maxHeaders = 64 << 10
)

// Options say how members are reached.
type Options struct {
	// Dial connects to the client port of the member on a Node.
	Dial func(ctx context.Context, node string) (net.Conn, error)
	// Identity is for TLS with the members.
	Identity *Identity
	// DialTimeout is DefaultDialTimeout if it is zero.
	DialTimeout time.Duration
	// CallTimeout is DefaultCallTimeout if it is zero.
	CallTimeout time.Duration
}

// Cluster is the etcd of one workload cluster. Its methods may be called concurrently.
type Cluster struct {
	options Options

	mu     sync.Mutex
	closed bool
	conns  map[string]*connection
}

// Member is a member as another member, or itself, sees it.
type Member struct {
	ID uint64
	// Name is the name of its Node. Empty: it was added but has not started yet.
	Name       string
	PeerURLs   []string
	ClientURLs []string
	// IsLearner: it does not vote yet.
	IsLearner bool
}

// View is what one member knows. It can be behind what the others know.
type View struct {
	// ID is that of the member that was asked.
	ID        uint64
	ClusterID uint64
	// LeaderID is never 0: a member that knows no leader is an error.
	LeaderID uint64
	// Members are in the order of their IDs.
	Members []Member
	// Alarms are those of the member that was asked, for example NOSPACE.
	Alarms []string
}

// ByName is the member of this name, which must not be empty.
func ByName(members []Member, name string) (Member, bool) {
	i := slices.IndexFunc(members, func(m Member) bool { return m.Name == name && name != "" })
	if i < 0 {
		return Member{}, false
	}
	return members[i], true
}

// ByID is the member of this ID.
func ByID(members []Member, id uint64) (Member, bool) {
	i := slices.IndexFunc(members, func(m Member) bool { return m.ID == id })
	if i < 0 {
		return Member{}, false
	}
	return members[i], true
}

// New is a Cluster without any connection yet. Close it after use.
func New(o Options) *Cluster {
	if o.DialTimeout == 0 {
		o.DialTimeout = DefaultDialTimeout
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = DefaultCallTimeout
	}
	return &Cluster{options: o, conns: map[string]*connection{}}
}

// View asks the member on a Node for what it knows by itself. It takes no agreement between members, so it works, and
// costs them next to nothing, however they are; only a member that reports problems is asked for its alarms, which goes
// through all of them.
func (c *Cluster) View(ctx context.Context, node string) (View, error) {
	var v View
	err := c.call(ctx, node, "asking", func(ctx context.Context, conn *grpc.ClientConn) error {
		maintenance := etcdserverpb.NewMaintenanceClient(conn)
		state, err := maintenance.Status(ctx, &etcdserverpb.StatusRequest{})
		if err != nil {
			return err
		}
		if state.Leader == 0 {
			return errors.New("it knows no leader")
		}
		list, err := etcdserverpb.NewClusterClient(conn).MemberList(ctx, &etcdserverpb.MemberListRequest{})
		if err != nil {
			return err
		}
		all, err := members(list.Members)
		if err != nil {
			return err
		}
		v = View{ID: identify(state.Header, node, all), ClusterID: state.Header.GetClusterId(), LeaderID: state.Leader, Members: all}
		if len(state.Errors) == 0 {
			return nil
		}
		v.Alarms, err = alarms(ctx, maintenance, v.ID)
		return err
	})
	return v, err
}

// identify is the ID of the member that answered. Cluster API v1.7's in-memory provider answers without a header; then
// it is the member of the name that was asked for, or 0 if there is none.
func identify(header *etcdserverpb.ResponseHeader, asked string, all []Member) uint64 {
	if id := header.GetMemberId(); id != 0 {
		return id
	}
	named, _ := ByName(all, asked)
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

// Members asks the member on a Node for what a quorum of members agrees on now, in the order of their IDs.
func (c *Cluster) Members(ctx context.Context, node string) ([]Member, error) {
	var all []Member
	err := c.call(ctx, node, "listing the members from", func(ctx context.Context, conn *grpc.ClientConn) error {
		list, err := etcdserverpb.NewClusterClient(conn).MemberList(ctx, &etcdserverpb.MemberListRequest{Linearizable: true})
		if err != nil {
			return err
		}
		all, err = members(list.Members)
		return err
	})
	return all, err
}

// members checks what a member says: names of members end up in conditions and events of the management cluster.
func members(list []*etcdserverpb.Member) ([]Member, error) {
	if len(list) > maxMembers {
		return nil, fmt.Errorf("it lists %d members, more than %d", len(list), maxMembers)
	}
	all := make([]Member, 0, len(list))
	for _, m := range list {
		if m.Name != "" && len(validation.IsDNS1123Subdomain(m.Name)) > 0 {
			return nil, fmt.Errorf("it lists member %x, whose name cannot be that of a Node", m.ID)
		}
		all = append(all, Member{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, IsLearner: m.IsLearner})
	}
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// MoveLeader asks the member on a Node to hand leadership over to the member of this ID. It is no error if it does not
// lead any more.
func (c *Cluster) MoveLeader(ctx context.Context, node string, to uint64) error {
	return c.call(ctx, node, "moving leadership from", func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := etcdserverpb.NewMaintenanceClient(conn).MoveLeader(ctx, &etcdserverpb.MoveLeaderRequest{TargetID: to})
		if errors.Is(rpctypes.Error(err), rpctypes.ErrNotLeader) {
			return nil
		}
		return err
	})
}

// RemoveMember asks the member on a Node to have the member of this ID removed. It is no error if it is gone already.
func (c *Cluster) RemoveMember(ctx context.Context, node string, id uint64) error {
	return c.call(ctx, node, "removing a member by way of", func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := etcdserverpb.NewClusterClient(conn).MemberRemove(ctx, &etcdserverpb.MemberRemoveRequest{ID: id})
		if errors.Is(rpctypes.Error(err), rpctypes.ErrMemberNotFound) {
			return nil
		}
		return err
	})
}

// call makes a call to the member on a Node, and ends the connection when the member did not answer. A connection that
// was kept may have been cut off without a word since it was last used, by a firewall for example, which says nothing
// of the member: so there is a second attempt, over a new one. All calls can be repeated.
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
		unanswered := status.Code(err) == codes.Unavailable || status.Code(err) == codes.DeadlineExceeded
		if unanswered {
			c.drop(node, conn)
		}
		if !unanswered || !kept || ctx.Err() != nil {
			return fmt.Errorf("%s the etcd member on Node %s: %w", what, node, err)
		}
	}
}

// attempt leaves time for a second one if the first is over a connection that was kept.
func (c *Cluster) attempt(ctx context.Context, kept bool, do func(context.Context) error) error {
	if kept {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.options.CallTimeout/3)
		defer cancel()
	}
	return do(ctx)
}

// connection is a connection to one member.
type connection struct {
	*grpc.ClientConn
	// proven: the member has answered over it.
	proven atomic.Bool
}

// connection is the one to the member on a Node. It is not connected before the first call.
func (c *Cluster) connection(node string) (*connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.New("the connection to the workload cluster was lost")
	}
	if conn := c.conns[node]; conn != nil {
		return conn, nil
	}
	conn, err := grpc.NewClient("passthrough:///etcd-"+node,
		grpc.WithTransportCredentials(credentials.NewTLS(c.options.Identity.config(node))),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return c.dial(ctx, node) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithIdleTimeout(idleTimeout),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: c.options.DialTimeout}),
	)
	if err != nil {
		return nil, fmt.Errorf("connecting to the etcd member on Node %s: %w", node, err)
	}
	c.conns[node] = &connection{ClientConn: conn}
	return c.conns[node], nil
}

// drop ends a connection unless another has taken its place.
func (c *Cluster) drop(node string, conn *connection) {
	c.mu.Lock()
	if c.conns[node] == conn {
		delete(c.conns, node)
	}
	c.mu.Unlock()
	_ = conn.Close() // It is of no use whatever this says.
}

// Keep ends the connections to members on other Nodes than these.
func (c *Cluster) Keep(nodes []string) {
	c.end(func(node string) bool { return !slices.Contains(nodes, node) })
}

// Close ends all connections, for good.
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
		_ = conn.Close() // It is of no use whatever this says.
	}
}
