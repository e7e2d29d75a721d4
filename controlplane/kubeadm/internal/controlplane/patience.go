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
	// callLimit bounds one question to a workload cluster, so that one that is silent leaves time for what follows.
	callLimit = 5 * time.Second
	// questionsLimit bounds all questions of one reconcile: workers are few, and clusters that are slow must not take them
	// from the others. Etcd members are asked twice when they disagree, and once more before one of them is removed.
	questionsLimit = 3 * callLimit
	// changesLimit bounds all changes of one reconcile. They have a time of their own: slow answers must not use up what
	// the change needs that they were asked for. Removing an etcd member takes three calls.
	changesLimit = 3 * callLimit
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
	// questions and changes are how much time is left for each in this reconcile.
	questions, changes time.Duration
}

// bound is the workload cluster within the limits of a reconcile that begins now.
func (c *Controller) bound(s *scope, w Workload) *bounded {
	return &bounded{Workload: w, uid: s.kcp.UID, pauses: &c.pauses, clock: c.Clock, questions: questionsLimit, changes: changesLimit}
}

// ask asks, unless the last question was in vain.
func (b *bounded) ask(ctx context.Context, what string, do func(context.Context) error) error {
	return b.call(ctx, what, callLimit, &b.questions, do)
}

// change changes something, unless the last attempt was in vain.
func (b *bounded) change(ctx context.Context, what string, do func(context.Context) error) error {
	return b.call(ctx, what, changesLimit, &b.changes, do)
}

// call takes what it needs of the time that is left, limit at most.
func (b *bounded) call(ctx context.Context, what string, limit time.Duration, left *time.Duration, do func(context.Context) error) error {
	begun, most := b.clock.Now(), min(limit, *left)
	if most <= 0 || b.pauses.on(b.uid, what, begun) {
		return errPaused
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := do(ctx)
	*left -= b.clock.Since(begun)
	b.note(ctx, what, err, most == limit)
	return err
}

// note whether something answered in time. What was cut short, because others had used the time up, is not to blame.
func (b *bounded) note(ctx context.Context, what string, err error, whole bool) {
	switch {
	case err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded):
		b.pauses.end(b.uid, what)
	case whole:
		b.pauses.begin(b.uid, what, b.clock.Now())
	}
}

// KubeadmConfigExists implements Workload.
func (b *bounded) KubeadmConfigExists(ctx context.Context) (exists bool, err error) {
	err = b.ask(ctx, theAPIServer, func(ctx context.Context) (err error) {
		exists, err = b.Workload.KubeadmConfigExists(ctx)
		return err
	})
	return exists, err
}

// Etcd implements Workload. Members that are left alone answer with an error.
func (b *bounded) Etcd(ctx context.Context, nodes []string) []EtcdMember {
	begun, most := b.clock.Now(), min(callLimit, b.questions)
	asked := slices.DeleteFunc(slices.Clone(nodes), func(node string) bool {
		return most <= 0 || b.pauses.on(b.uid, theMember+node, begun)
	})
	ctx, cancel := context.WithTimeout(ctx, max(most, 0))
	defer cancel()
	answers := map[string]EtcdMember{}
	all := b.Workload.Etcd(ctx, asked)
	b.questions -= b.clock.Since(begun)
	for _, answer := range all {
		b.note(ctx, theMember+answer.Node, answer.Err, most == callLimit)
		answers[answer.Node] = answer
	}
	all = make([]EtcdMember, 0, len(nodes))
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
	return b.change(ctx, theEtcd, func(ctx context.Context) error { return b.Workload.MoveEtcdLeadership(ctx, from, to) })
}

// RemoveEtcdMember implements Workload.
func (b *bounded) RemoveEtcdMember(ctx context.Context, name string, via []string) error {
	return b.change(ctx, theEtcd, func(ctx context.Context) error { return b.Workload.RemoveEtcdMember(ctx, name, via) })
}

// RemoveUnstartedEtcdMembers implements Workload.
func (b *bounded) RemoveUnstartedEtcdMembers(ctx context.Context, via []string) error {
	return b.change(ctx, theEtcd, func(ctx context.Context) error { return b.Workload.RemoveUnstartedEtcdMembers(ctx, via) })
}

// PrepareVersion implements Workload.
func (b *bounded) PrepareVersion(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) error {
	return b.change(ctx, theAPIServer, func(ctx context.Context) error { return b.Workload.PrepareVersion(ctx, kcp) })
}

// Maintain implements Workload.
func (b *bounded) Maintain(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) error {
	return b.change(ctx, theAPIServer, func(ctx context.Context) error { return b.Workload.Maintain(ctx, kcp) })
}

// CertificateExpiry implements Workload.
func (b *bounded) CertificateExpiry(ctx context.Context, node string) (expiry time.Time, err error) {
	err = b.ask(ctx, theCertificate+node, func(ctx context.Context) (err error) {
		expiry, err = b.Workload.CertificateExpiry(ctx, node)
		return err
	})
	return expiry, err
}
