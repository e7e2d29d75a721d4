package etcd

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
)

// maintenanceServer is etcd's Maintenance service.
type maintenanceServer struct {
	etcdserverpb.UnimplementedMaintenanceServer
	// slots limits how many databases exist at the same time.
	slots chan struct{}
}

// Status returns the status of the responding member. The raft index is the store's revision, which grows with every
// write. The size of the database is an estimate: it only exists if a client requests a snapshot.
func (*maintenanceServer) Status(ctx context.Context, _ *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	c, m, err := self(ctx)
	if err != nil {
		return nil, err
	}
	size := databaseSize(ctx.Value(targetKey{}).(target).group.Size())
	header := c.header(ctx, m)
	version := versionOf(ctx.Value(targetKey{}).(target).group, m.Machine)
	response := &etcdserverpb.StatusResponse{
		Header:           header,
		Version:          version.String(),
		StorageVersion:   storageVersion(version),
		DbSize:           size,
		DbSizeInUse:      size,
		Leader:           c.Leader,
		RaftIndex:        uint64(header.Revision),
		RaftAppliedIndex: uint64(header.Revision),
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
