package controlplane

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
)

const (
	// reconcileLimit bounds what all calls to a workload cluster may take in one reconcile: workers are few, and clusters
	// that hang must not take them from the others.
	reconcileLimit = 10 * time.Second
	// callLimit bounds one question to an etcd member, so that one that is silent leaves time for what follows.
	callLimit = 5 * time.Second
	// firstPause is how long something that did not answer in time is left alone. It doubles up to lastPause.
	firstPause = 5 * time.Second
	lastPause  = time.Minute
)

// errPaused stands for an answer from what did not answer in time before.
var errPaused = errors.New("it did not answer in time, and is not asked again for a while")

// pauses remember what did not answer in time, by control plane, and what was asked. Losing them costs a worker once
// more.
type pauses struct {
	mu    sync.Mutex
	known map[types.UID]map[string]pause
}

type pause struct {
	length time.Duration
	until  time.Time
}

// on reports whether this is to be left alone now.
func (p *pauses) on(uid types.UID, what string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Before(p.known[uid][what].until)
}

// begin a pause, longer than the one before.
func (p *pauses) begin(uid types.UID, what string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[types.UID]map[string]pause{}
	}
	if p.known[uid] == nil {
		p.known[uid] = map[string]pause{}
	}
	length := min(max(firstPause, 2*p.known[uid][what].length), lastPause)
	p.known[uid][what] = pause{length, now.Add(length)}
}

// end: it has answered.
func (p *pauses) end(uid types.UID, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known[uid], what)
}

// forget all of a control plane.
func (p *pauses) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, uid)
}

// What is asked, apart from members of etcd and certificates, which are asked by Node.
const (
	theAPIServer   = "API server"
	theEtcd        = "etcd"
	theMember      = "etcd member on Node "
	theCertificate = "certificate on Node "
)

// bounded is a workload cluster for one reconcile. Its calls end in time, whether it answers or not; what did not
// answer is left alone for a while, at no cost.
type bounded struct {
	Workload
	uid    types.UID
	pauses *pauses
	clock  clock.PassiveClock
	until  time.Time
}

// bound is the workload cluster within the limits of a reconcile that begins now.
func (c *Controller) bound(s *scope, w Workload) *bounded {
	return &bounded{Workload: w, uid: s.kcp.UID, pauses: &c.pauses, clock: c.Clock, until: c.Clock.Now().Add(reconcileLimit)}
}

// call calls, unless the last call was in vain.
func (b *bounded) call(ctx context.Context, what string, limit time.Duration, do func(context.Context) error) error {
	now := b.clock.Now()
	left := min(limit, b.until.Sub(now))
	if left <= 0 || b.pauses.on(b.uid, what, now) {
		return errPaused
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	err := do(ctx)
	b.note(ctx, what, err)
	return err
}

// note whether something answered in time.
func (b *bounded) note(ctx context.Context, what string, err error) {
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		b.pauses.begin(b.uid, what, b.clock.Now())
	} else {
		b.pauses.end(b.uid, what)
	}
}

// KubeadmConfigExists implements Workload.
func (b *bounded) KubeadmConfigExists(ctx context.Context) (exists bool, err error) {
	err = b.call(ctx, theAPIServer, callLimit, func(ctx context.Context) (err error) {
		exists, err = b.Workload.KubeadmConfigExists(ctx)
		return err
	})
	return exists, err
}

// Etcd implements Workload. Members that are left alone answer with an error.
func (b *bounded) Etcd(ctx context.Context, nodes []string) []EtcdMember {
	now := b.clock.Now()
	left := min(callLimit, b.until.Sub(now))
	asked := slices.DeleteFunc(slices.Clone(nodes), func(node string) bool {
		return left <= 0 || b.pauses.on(b.uid, theMember+node, now)
	})
	ctx, cancel := context.WithTimeout(ctx, max(left, 0))
	defer cancel()
	answers := map[string]EtcdMember{}
	for _, answer := range b.Workload.Etcd(ctx, asked) {
		b.note(ctx, theMember+answer.Node, answer.Err)
		answers[answer.Node] = answer
	}
	all := make([]EtcdMember, 0, len(nodes))
	for _, node := range nodes {
		answer, ok := answers[node]
		if !ok {
			answer = EtcdMember{Node: node, Err: errPaused}
		}
		all = append(all, answer)
	}
	return all
}

// MoveEtcdLeadership implements Workload.
func (b *bounded) MoveEtcdLeadership(ctx context.Context, from, to string) error {
	return b.call(ctx, theEtcd, reconcileLimit, func(ctx context.Context) error { return b.Workload.MoveEtcdLeadership(ctx, from, to) })
}

// RemoveEtcdMember implements Workload.
func (b *bounded) RemoveEtcdMember(ctx context.Context, name string, via []string) error {
	return b.call(ctx, theEtcd, reconcileLimit, func(ctx context.Context) error { return b.Workload.RemoveEtcdMember(ctx, name, via) })
}

// RemoveUnstartedEtcdMembers implements Workload.
func (b *bounded) RemoveUnstartedEtcdMembers(ctx context.Context, via []string) error {
	return b.call(ctx, theEtcd, reconcileLimit, func(ctx context.Context) error { return b.Workload.RemoveUnstartedEtcdMembers(ctx, via) })
}

// PrepareVersion implements Workload.
func (b *bounded) PrepareVersion(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) error {
	return b.call(ctx, theAPIServer, reconcileLimit, func(ctx context.Context) error { return b.Workload.PrepareVersion(ctx, kcp) })
}

// Maintain implements Workload.
func (b *bounded) Maintain(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) error {
	return b.call(ctx, theAPIServer, reconcileLimit, func(ctx context.Context) error { return b.Workload.Maintain(ctx, kcp) })
}

// CertificateExpiry implements Workload.
func (b *bounded) CertificateExpiry(ctx context.Context, node string) (expiry time.Time, err error) {
	err = b.call(ctx, theCertificate+node, callLimit, func(ctx context.Context) (err error) {
		expiry, err = b.Workload.CertificateExpiry(ctx, node)
		return err
	})
	return expiry, err
}
