package membership

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
)

// DefaultJoinTimeout is the default of Remover.JoinTimeout. kubeadm pulls images between the two.
const DefaultJoinTimeout = 5 * time.Minute

// exclude makes sure that the machine of a Machine whose member is not listed, or has just been removed, cannot make etcd lose its quorum
// by joining before its infrastructure is gone. It returns what that waits for.
//
// Nothing is done if etcd would keep its quorum even then: the member is removed later, because it has no Machine. Otherwise the
// bootstrap token of the machine is revoked, so that kubeadm cannot begin to join. From then on a kubeadm that had used the token
// before, and has the certificates it needs to join etcd, gets JoinTimeout to do so; if it does, its member is removed first.
// Only this process remembers when the token was revoked: another one begins anew.
func (r *Remover) exclude(ctx context.Context, state State, m *snapshot.Machine) (why string, err error) {
	if !state.mayJoin(m) {
		return "", nil
	}
	cluster := state.query(ctx)
	if cluster.Members == nil {
		return noResponse, nil
	}
	if cluster.MayGain(state.leavingJoiners()) == "" {
		return "", nil
	}
	since, revoked := r.joins.since(state.KCP.UID, m.UID)
	if !revoked || r.Clock.Since(since) >= r.JoinTimeout {
		existed, err := state.revokeToken(ctx, m)
		if err != nil {
			return "", fmt.Errorf("revoking its bootstrap token: %w", err)
		}
		if revoked && !existed {
			r.joins.forget(state.KCP.UID, m.UID)
			return "", nil
		}
		r.joins.begin(state.KCP.UID, m.UID, r.Clock.Now())
	}
	return fmt.Sprintf("%s to pass: its machine may be joining etcd, which would have no quorum if that machine was gone then",
		r.JoinTimeout), nil
}

// revokeToken deletes the bootstrap token of the machine, and reports whether it existed. It is unknown if the KubeadmConfig is gone: then
// it expires.
func (s State) revokeToken(ctx context.Context, m *snapshot.Machine) (existed bool, err error) {
	if m.Config == nil {
		return false, nil
	}
	return s.Workload.RevokeToken(ctx, kubeadm.TokenIDOf(m.Config))
}

// mayJoin reports whether kubeadm may be about to add an etcd member for the Machine. It has done so if there is the Pod of etcd, whose
// manifest it writes then, and cannot before there is bootstrap data.
func (s State) mayJoin(m *snapshot.Machine) bool {
	return s.Observed.Pods["etcd-"+m.Node()] == nil && m.Spec.Bootstrap.DataSecretName != nil
}

// leavingJoiners returns the number of Machines that are being deleted and may still join.
func (s State) leavingJoiners() int {
	return len(slices.DeleteFunc(s.deleting(), func(m *snapshot.Machine) bool { return !s.mayJoin(m) }))
}

// joins remembers since when machines cannot begin to join: by the UIDs of their control planes and their own. Its zero value
// remembers none.
type joins struct {
	mu    sync.Mutex
	times map[types.UID]map[types.UID]time.Time
}

func (j *joins) since(controlPlane, machine types.UID) (time.Time, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	at, known := j.times[controlPlane][machine]
	return at, known
}

func (j *joins) begin(controlPlane, machine types.UID, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.times == nil {
		j.times = map[types.UID]map[types.UID]time.Time{}
	}
	if j.times[controlPlane] == nil {
		j.times[controlPlane] = map[types.UID]time.Time{}
	}
	j.times[controlPlane][machine] = at
}

// forget forgets Machines of a control plane, or all of them.
func (j *joins) forget(controlPlane types.UID, machines ...types.UID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, machine := range machines {
		delete(j.times[controlPlane], machine)
	}
	if len(machines) == 0 || len(j.times[controlPlane]) == 0 {
		delete(j.times, controlPlane)
	}
}
