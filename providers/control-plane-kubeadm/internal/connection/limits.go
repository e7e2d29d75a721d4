package connection

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/quorum"
)

const (
	// ReadLimit bounds one read from a workload cluster.
	ReadLimit = 5 * time.Second
	// readsLimit bounds all reads of one reconcile: the number of workers is limited, and slow clusters must not occupy all of
	// them. Etcd members are queried twice if they disagree, and once more before one of them is removed.
	readsLimit = 3 * ReadLimit
	// writesLimit bounds all writes of one reconcile. They have a separate budget, so that slow reads leave time for the write
	// that follows them. Removing an etcd member takes three calls.
	writesLimit = 3 * ReadLimit
)

// What has a backoff of its own. Etcd members and certificates have one per Node.
const (
	apiServer   = "API server"
	etcd        = "etcd"
	etcdMember  = "etcd member on Node "
	certificate = "certificate on Node "
)

// bounded is a workload cluster for the duration of one reconcile. It bounds the time of all calls, and skips those that have a
// backoff.
type bounded struct {
	Workload
	uid      types.UID
	backoffs *backoffs
	clock    clock.PassiveClock
	// reads and writes are the time that is left for them in this reconcile.
	reads, writes time.Duration
}

// bound returns the workload cluster with the limits of a reconcile that starts now. Backoffs of an earlier connection end.
func (c *Connector) bound(uid types.UID, w Workload) *bounded {
	c.backoffs.renew(uid, w.ConnectedSince())
	return &bounded{Workload: w, uid: uid, backoffs: &c.backoffs, clock: c.Clock, reads: readsLimit, writes: writesLimit}
}

// read calls do within the limits of reads.
func (b *bounded) read(ctx context.Context, what string, do func(context.Context) error) error {
	return b.call(ctx, what, ReadLimit, &b.reads, do)
}

// write calls do within the limits of writes.
func (b *bounded) write(ctx context.Context, what string, do func(context.Context) error) error {
	return b.call(ctx, what, writesLimit, &b.writes, do)
}

// call calls do for at most limit, and at most the time that is left, unless there is a backoff.
func (b *bounded) call(ctx context.Context, what string, limit time.Duration, left *time.Duration, do func(context.Context) error) error {
	begun, most := b.clock.Now(), min(limit, *left)
	if most <= 0 {
		return &backoffError{left: firstBackoff}
	}
	if wait := b.backoffs.left(b.uid, what, begun); wait > 0 {
		return &backoffError{left: wait}
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := do(ctx)
	*left -= b.clock.Since(begun)
	b.note(ctx, what, err, most == limit)
	return err
}

// note starts a backoff after a timeout, and ends it otherwise. A timeout does not count if other calls had used up the time.
func (b *bounded) note(ctx context.Context, what string, err error, whole bool) {
	switch {
	case err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded):
		b.backoffs.end(b.uid, what)
	case whole:
		b.backoffs.begin(b.uid, what, b.clock.Now())
	}
}

// KubeadmConfigExists implements Workload.
func (b *bounded) KubeadmConfigExists(ctx context.Context) (exists bool, err error) {
	err = b.read(ctx, apiServer, func(ctx context.Context) (err error) {
		exists, err = b.Workload.KubeadmConfigExists(ctx)
		return err
	})
	return exists, err
}

// Etcd implements Workload. Members with a backoff are reported with ErrBackoff.
func (b *bounded) Etcd(ctx context.Context, nodes []string) []quorum.Member {
	begun, most := b.clock.Now(), min(ReadLimit, b.reads)
	queried := slices.DeleteFunc(slices.Clone(nodes), func(node string) bool {
		return most <= 0 || b.backoffs.left(b.uid, etcdMember+node, begun) > 0
	})
	ctx, cancel := context.WithTimeout(ctx, max(most, 0))
	defer cancel()
	responses := map[string]quorum.Member{}
	all := b.Workload.Etcd(ctx, queried)
	b.reads -= b.clock.Since(begun)
	for _, response := range all {
		b.note(ctx, etcdMember+response.Node, response.Err, most == ReadLimit)
		responses[response.Node] = response
	}
	all = make([]quorum.Member, 0, len(nodes))
	for _, node := range nodes {
		response, ok := responses[node]
		if !ok {
			response = quorum.Member{Node: node, Err: ErrBackoff}
		}
		all = append(all, response)
	}
	return all
}

// MoveEtcdLeadership implements Workload.
func (b *bounded) MoveEtcdLeadership(ctx context.Context, from, to string) error {
	return b.write(ctx, etcd, func(ctx context.Context) error { return b.Workload.MoveEtcdLeadership(ctx, from, to) })
}

// RemoveEtcdMember implements Workload.
func (b *bounded) RemoveEtcdMember(ctx context.Context, name string, via []string) error {
	return b.write(ctx, etcd, func(ctx context.Context) error { return b.Workload.RemoveEtcdMember(ctx, name, via) })
}

// RemoveUnstartedEtcdMembers implements Workload.
func (b *bounded) RemoveUnstartedEtcdMembers(ctx context.Context, via []string) error {
	return b.write(ctx, etcd, func(ctx context.Context) error { return b.Workload.RemoveUnstartedEtcdMembers(ctx, via) })
}

// RevokeToken implements Workload.
func (b *bounded) RevokeToken(ctx context.Context, id string) (existed bool, err error) {
	err = b.write(ctx, apiServer, func(ctx context.Context) error {
		var err error
		existed, err = b.Workload.RevokeToken(ctx, id)
		return err
	})
	return existed, err
}

// PrepareVersion implements Workload.
func (b *bounded) PrepareVersion(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) error {
	return b.write(ctx, apiServer, func(ctx context.Context) error { return b.Workload.PrepareVersion(ctx, kcp) })
}

// Maintain implements Workload.
func (b *bounded) Maintain(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) error {
	return b.write(ctx, apiServer, func(ctx context.Context) error { return b.Workload.Maintain(ctx, kcp) })
}

// CertificateExpiry implements Workload.
func (b *bounded) CertificateExpiry(ctx context.Context, node string) (expiry time.Time, err error) {
	err = b.read(ctx, certificate+node, func(ctx context.Context) (err error) {
		expiry, err = b.Workload.CertificateExpiry(ctx, node)
		return err
	})
	return expiry, err
}
