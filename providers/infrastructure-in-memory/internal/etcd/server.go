package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
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
	s.grpc = grpc.NewServer(grpc.UnaryInterceptor(s.intercept))
	etcdserverpb.RegisterClusterServer(s.grpc, &clusterServer{})
	etcdserverpb.RegisterMaintenanceServer(s.grpc, &maintenanceServer{})
	etcdserverpb.RegisterKVServer(s.grpc, &kvServer{})
	return s
}

// Serve handles a gRPC request over HTTP/2 for the member on a node. The caller has authenticated the client.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, g *cloud.Group, node string) {
	ctx := context.WithValue(r.Context(), targetKey{}, target{group: g, node: node})
	s.grpc.ServeHTTP(w, r.WithContext(ctx))
}

// intercept handles what is common to all calls: faults and unavailable members.
func (s *Server) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	at := ctx.Value(targetKey{}).(target)
	began := at.group.Now()
	response, err := func() (response any, err error) {
		// The call runs on a goroutine of gRPC, where a panic would crash the process.
		defer failsafe.Recover(info.FullMethod, &err)
		if err := at.group.InjectFaults(ctx); err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
		if _, _, err := self(ctx); err != nil {
			return nil, err
		}
		if at.group.Faults().Emulate == faults.EmulateV17 {
			return legacyIntercept(ctx, req, info, handler)
		}
		return handler(ctx, req)
	}()
	if s.observe != nil {
		s.observe(Call{Cluster: at.group, Method: info.FullMethod, Code: status.Code(err), Duration: at.group.Now().Sub(began)})
	}
	return response, err
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
	return &etcdserverpb.ResponseHeader{ClusterId: c.ID, MemberId: m.ID, Revision: revision(ctx), RaftTerm: c.Term}
}

func revision(ctx context.Context) int64 {
	return int64(ctx.Value(targetKey{}).(target).group.Revision() & math.MaxInt64)
}

func (c Cluster) list() []*etcdserverpb.Member {
	members := make([]*etcdserverpb.Member, 0, len(c.Members))
	for _, m := range c.Members {
		members = append(members, &etcdserverpb.Member{
			ID:         m.ID,
			Name:       m.Machine.Name,
			PeerURLs:   []string{"https://" + m.Machine.Name + ":2380"},
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

// maintenanceServer is etcd's Maintenance service.
type maintenanceServer struct {
	etcdserverpb.UnimplementedMaintenanceServer
}

// Status returns the status of the responding member. The raft index is the store's revision, which grows with every
// write.
func (*maintenanceServer) Status(ctx context.Context, _ *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	c, m, err := self(ctx)
	if err != nil {
		return nil, err
	}
	_, bytes := ctx.Value(targetKey{}).(target).group.Size()
	index := uint64(revision(ctx))
	version := versionOf(ctx.Value(targetKey{}).(target).group, m.Machine)
	response := &etcdserverpb.StatusResponse{
		Header:           c.header(ctx, m),
		Version:          version.String(),
		StorageVersion:   fmt.Sprintf("%d.%d.0", version.Major, version.Minor),
		DbSize:           int64(bytes),
		DbSizeInUse:      int64(bytes),
		Leader:           c.Leader,
		RaftIndex:        index,
		RaftAppliedIndex: index,
		RaftTerm:         c.Term,
	}
	if c.Leader == 0 {
		response.Errors = []string{"etcdserver: no leader"}
	}
	return response, nil
}

// versionOf returns the version of etcd on a machine: that of the image of its Pod, or else the newest one.
func versionOf(g *cloud.Group, m Machine) semver.Version {
	if pod, err := store.Get[corev1.Pod](g, metav1.NamespaceSystem, podPrefix+m.Name); err == nil && len(pod.Spec.Containers) > 0 {
		image := pod.Spec.Containers[0].Image
		if v, ok := kubeadm.ParseEtcd(image[strings.LastIndex(image, ":")+1:]); ok {
			return v
		}
	}
	v, _ := kubeadm.ParseEtcd(kubeadm.DefaultEtcdTag("")) // It is valid.
	return v
}

// Alarm lists and disarms alarms. There are never any.
func (*maintenanceServer) Alarm(ctx context.Context, r *etcdserverpb.AlarmRequest) (*etcdserverpb.AlarmResponse, error) {
	if r.Action == etcdserverpb.AlarmRequest_ACTIVATE {
		return nil, status.Error(codes.Unimplemented, "activating alarms is not supported")
	}
	c, m, err := self(ctx)
	if err != nil {
		return nil, err
	}
	if !c.HasQuorum() {
		return nil, rpctypes.ErrGRPCTimeout
	}
	return &etcdserverpb.AlarmResponse{Header: c.header(ctx, m)}, nil
}

// Defragment has nothing to do.
func (*maintenanceServer) Defragment(ctx context.Context, _ *etcdserverpb.DefragmentRequest) (*etcdserverpb.DefragmentResponse, error) {
	c, m, err := self(ctx)
	if err != nil {
		return nil, err
	}
	return &etcdserverpb.DefragmentResponse{Header: c.header(ctx, m)}, nil
}

// MoveLeader makes another member the leader. Only the leader accepts it.
func (*maintenanceServer) MoveLeader(ctx context.Context, r *etcdserverpb.MoveLeaderRequest) (*etcdserverpb.MoveLeaderResponse, error) {
	c, m, err := self(ctx)
	if err != nil {
		return nil, err
	}
	if m.ID != c.Leader {
		return nil, rpctypes.ErrGRPCNotLeader
	}
	next, found := c.byID(r.TargetID)
	if !found || !next.Alive {
		return nil, rpctypes.ErrGRPCBadLeaderTransferee
	}
	if next.ID != m.ID {
		g := ctx.Value(targetKey{}).(target).group
		from := g.Now().UTC().Format(time.RFC3339)
		if err := errors.Join(lead(g, c.ID, next.ID), annotate(g, next.Machine, LeaderFromAnnotation, from)); err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
	}
	return &etcdserverpb.MoveLeaderResponse{Header: c.header(ctx, m)}, nil
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
