package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"path"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

// Server serves etcd's gRPC API for the members of all workload clusters.
type Server struct {
	grpc    *grpc.Server
	observe func(Call)
}

// Call is a completed call, for metrics.
type Call struct {
	// Cluster is the resource group of the workload cluster.
	Cluster *cloud.Group
	// Method is the full gRPC method, for example /etcdserverpb.Cluster/MemberList.
	Method string
	// Code is the gRPC status.
	Code codes.Code
	// Duration is how long the call took.
	Duration time.Duration
}

// target is the member of a request.
type target struct {
	group *cloud.Group
	node  string
}

type targetKey struct{}

// NewServer returns a Server. observe, which may be nil, is called for every call.
func NewServer(observe func(Call)) *Server {
	s := &Server{observe: observe}
	s.grpc = grpc.NewServer(grpc.UnaryInterceptor(s.intercept), grpc.StreamInterceptor(s.interceptStream))
	etcdserverpb.RegisterClusterServer(s.grpc, &clusterServer{})
	etcdserverpb.RegisterMaintenanceServer(s.grpc, &maintenanceServer{slots: make(chan struct{}, maxDatabases)})
	etcdserverpb.RegisterKVServer(s.grpc, &kvServer{})
	return s
}

// Serve handles a gRPC request over HTTP/2 for the member on a node. The caller has authenticated the client.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, g *cloud.Group, node string) {
	if r.URL.Path == snapshotMethod {
		// Only connections in tests do not support deadlines.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(snapshotTimeout))
	}
	ctx := context.WithValue(r.Context(), targetKey{}, target{group: g, node: node})
	s.grpc.ServeHTTP(w, r.WithContext(ctx))
}

// intercept handles what is common to all calls.
func (s *Server) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (response any, err error) {
	err = s.handle(ctx, info.FullMethod, func(legacy bool) (err error) {
		if legacy {
			response, err = legacyIntercept(ctx, req, info, handler)
		} else {
			response, err = handler(ctx, req)
		}
		return err
	})
	return response, err
}

// interceptStream is intercept for streams.
func (s *Server) interceptStream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return s.handle(stream.Context(), info.FullMethod, func(legacy bool) error {
		if legacy {
			return status.Error(codes.Unimplemented, "not implemented")
		}
		return handler(server, stream)
	})
}

// handle calls a function for a call, unless a fault is injected or the member is unavailable. legacy is whether an old etcd is emulated.
func (s *Server) handle(ctx context.Context, method string, do func(legacy bool) error) error {
	at := ctx.Value(targetKey{}).(target)
	began := at.group.Now()
	err := func() (err error) {
		// The call runs on a goroutine of gRPC, where a panic would crash the process.
		defer failsafe.Recover(method, &err)
		if err := at.group.InjectFaults(ctx); err != nil {
			return status.Error(codes.Unavailable, err.Error())
		}
		if _, _, err := self(ctx); err != nil {
			return err
		}
		return do(at.group.Faults().Emulate == faults.EmulateV17)
	}()
	if s.observe != nil {
		s.observe(Call{Cluster: at.group, Method: method, Code: status.Code(err), Duration: at.group.Now().Sub(began)})
	}
	return err
}

// legacyIntercept emulates the etcd of Cluster API v1.7's in-memory provider: it supports five calls, and two of them do not
// return the responding member.
func legacyIntercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	switch path.Base(info.FullMethod) {
	case "MemberList", "MemberRemove", "Status", "Alarm", "MoveLeader":
	default:
		return nil, status.Error(codes.Unimplemented, "not implemented")
	}
	response, err := handler(ctx, req)
	switch r := response.(type) {
	case *etcdserverpb.StatusResponse:
		r.Header = nil
	case *etcdserverpb.MemberListResponse:
		r.Header = nil
	}
	return response, err
}

// self returns the state of the cluster and the responding member. An unknown, removed or dead member does not respond.
func self(ctx context.Context) (Cluster, Member, error) {
	at := ctx.Value(targetKey{}).(target)
	if at.group.Dead(at.node) {
		return Cluster{}, Member{}, status.Error(codes.Unavailable, fmt.Sprintf("machine %s does not respond", at.node))
	}
	machine, err := at.group.Machine(at.node)
	if err != nil {
		return Cluster{}, Member{}, status.Error(codes.Unavailable, fmt.Sprintf("machine %s does not exist", at.node))
	}
	s, err := elected(at.group)
	if err != nil {
		return Cluster{}, Member{}, status.Error(codes.Internal, err.Error())
	}
	c, member, removed := s.find(Machine{Name: machine.Name, UID: machine.UID})
	switch {
	case c == nil:
		return Cluster{}, Member{}, status.Error(codes.Unavailable, fmt.Sprintf("etcd does not run on %s", at.node))
	case removed:
		return Cluster{}, Member{}, rpctypes.ErrGRPCStopped
	}
	cluster := c.toCluster(at.group)
	m, _ := cluster.byID(member.ID)
	return cluster, m, nil
}

func (c Cluster) header(ctx context.Context, m Member) *etcdserverpb.ResponseHeader {
	return c.headerAt(m, ctx.Value(targetKey{}).(target).group.Revision())
}

func (c Cluster) headerAt(m Member, revision uint64) *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{ClusterId: c.ID, MemberId: m.ID, Revision: signed(revision), RaftTerm: c.Term}
}

// signed returns a revision as etcd has it.
func signed(revision uint64) int64 { return int64(revision & math.MaxInt64) }

func (c Cluster) list() []*etcdserverpb.Member {
	members := make([]*etcdserverpb.Member, 0, len(c.Members))
	for _, m := range c.Members {
		members = append(members, &etcdserverpb.Member{
			ID:         m.ID,
			Name:       m.Machine.Name,
			PeerURLs:   m.PeerURLs,
			ClientURLs: []string{"https://" + m.Machine.Name + ":2379"},
		})
	}
	return members
}

// clusterServer is etcd's Cluster service. Members are only added by starting etcd on machines, see Join.
type clusterServer struct {
	etcdserverpb.UnimplementedClusterServer
}

// MemberList lists the members. It needs a quorum if the request is linearizable.
func (*clusterServer) MemberList(ctx context.Context, r *etcdserverpb.MemberListRequest) (*etcdserverpb.MemberListResponse, error) {
	c, m, err := self(ctx)
	if err != nil {
		return nil, err
	}
	if r.Linearizable && !c.HasQuorum() {
		return nil, rpctypes.ErrGRPCTimeout
	}
	return &etcdserverpb.MemberListResponse{Header: c.header(ctx, m), Members: c.list()}, nil
}

// MemberRemove removes a member, which may be the responding one. It fails if the remaining members would have no quorum.
func (*clusterServer) MemberRemove(ctx context.Context, r *etcdserverpb.MemberRemoveRequest) (*etcdserverpb.MemberRemoveResponse, error) {
	c, m, err := self(ctx)
	if err != nil {
		return nil, err
	}
	if !c.HasQuorum() {
		return nil, rpctypes.ErrGRPCTimeout
	}
	gone, found := c.byID(r.ID)
	if !found {
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	remaining := c.without(gone.ID)
	if len(remaining.Members) == 0 {
		return nil, rpctypes.ErrGRPCMemberNotEnoughStarted
	}
	if !remaining.HasQuorum() {
		return nil, rpctypes.ErrGRPCUnhealthy
	}
	g := ctx.Value(targetKey{}).(target).group
	if err := errors.Join(Remove(g, c.ID, gone.ID), annotate(g, gone.Machine, MemberRemovedAnnotation, "")); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &etcdserverpb.MemberRemoveResponse{Header: c.header(ctx, m), Members: remaining.list()}, nil
}

// MemberUpdate changes the peer URLs of a member, as after a restore.
func (*clusterServer) MemberUpdate(ctx context.Context, r *etcdserverpb.MemberUpdateRequest) (*etcdserverpb.MemberUpdateResponse, error) {
	urls, err := types.NewURLs(r.PeerURLs)
	if err != nil {
		return nil, rpctypes.ErrGRPCMemberBadURLs
	}
	c, _, err := self(ctx)
	if err != nil {
		return nil, err
	}
	if !c.HasQuorum() {
		return nil, rpctypes.ErrGRPCTimeout
	}
	if _, found := c.byID(r.ID); !found {
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	for _, other := range c.without(r.ID).Members {
		if slices.ContainsFunc(urls.StringSlice(), func(u string) bool { return slices.Contains(other.PeerURLs, u) }) {
			return nil, rpctypes.ErrGRPCPeerURLExist
		}
	}
	g := ctx.Value(targetKey{}).(target).group
	if err := setPeerURLs(g, c.ID, r.ID, urls.StringSlice()); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	c, m, err := self(ctx)
	if err != nil {
		return nil, err
	}
	return &etcdserverpb.MemberUpdateResponse{Header: c.header(ctx, m), Members: c.list()}, nil
}

// kvServer is etcd's key-value service. It has no keys; reads succeed because clients use them as health checks.
type kvServer struct {
	etcdserverpb.UnimplementedKVServer
}

// Range returns no keys.
func (*kvServer) Range(ctx context.Context, r *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	c, m, err := self(ctx)
	if err != nil {
		return nil, err
	}
	if !r.Serializable && !c.HasQuorum() {
		return nil, rpctypes.ErrGRPCTimeout
	}
	return &etcdserverpb.RangeResponse{Header: c.header(ctx, m)}, nil
}
