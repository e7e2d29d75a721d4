package upgrade

import (
	"context"

	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages/lock"
	"sigs.k8s.io/cluster-api/packages/replace"
	"sigs.k8s.io/cluster-api/packages/retry"
)

// Replacing are the inputs that all commands have that replace a part of a management cluster, one at a time.
type Replacing struct {
	IO         *iostreams.Streams
	Connect    func(management.Kubeconfig) (*management.Cluster, error)
	Kubeconfig management.Kubeconfig
	// Self and Ended are of the Lease; see package lock.
	Self  lock.Holder
	Ended func(lock.Holder) bool
	Clock clock.PassiveClock
}

func newReplacing(f *factory.Factory) Replacing {
	return Replacing{IO: f.IO, Connect: f.Connect, Self: lock.Self(), Ended: lock.Ended, Clock: clock.RealClock{}}
}

// connect returns the management cluster, with a client without limit of requests, and the Lease that a replacement holds.
func (r *Replacing) connect(ctx context.Context) (*management.Cluster, *lock.Lock, error) {
	m, err := r.Connect(r.Kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	if err := m.CheckContract(ctx); err != nil {
		return nil, nil, err
	}
	if m, err = m.Unlimited(); err != nil {
		return nil, nil, err
	}
	return m, &lock.Lock{
		Task: replace.Task(), Config: m.Config, Namespace: replace.LockNamespace, Self: r.Self, Ended: r.Ended,
		Retry: retry.Policy{Backoff: retry.Backoff()},
		Clock: r.Clock, Say: r.IO.Infof, Explain: management.Text,
	}, nil
}
