package manager

import (
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"sigs.k8s.io/cluster-api/sdk/internal/tenure"
)

// election is how a component becomes the leader: by a Lease, by its host, or at once if lock is nil.
type election struct {
	lock resourcelock.Interface
	// lease is the Lease of lock, nil if the host decides.
	lease *resourcelock.LeaseLock
	// config is the connection for what only the leader does.
	config *rest.Config
}

// elect prepares leader election. A leader writes for as long as its tenure.
func (r *run) elect() (election, error) {
	durations := r.options.leaderElection
	r.tenure = tenure.New((durations.RenewDeadline+durations.Lease)/2, clock.RealClock{})
	e := election{config: r.config}
	switch {
	case r.host.shared():
		if r.options.leaderElect {
			r.log.Info("Ignoring --leader-elect: this process has all replicas")
		}
		if r.host.Lead != nil {
			e.lock = newTurn(r.component.Name, r.host.Lead)
		}
	case r.options.leaderElect:
		var err error
		if e.lease, err = newLease(r.config, r.namespace, r.component.LeaderElectionID, durations); err != nil {
			return election{}, err
		}
		e.lock = r.tenure.Watch(e.lease)
		e.config = rest.CopyConfig(r.config)
		tenure.Guard(e.config, r.tenure.Check)
	}
	return e, nil
}

// newLease returns a Lease with its own connection, which no other request slows down. A request has half of the deadline, so that
// one that hangs does not cost the leadership.
func newLease(config *rest.Config, namespace, name string, d LeaderElectionDurations) (*resourcelock.LeaseLock, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming this replica for leader election: %w", err)
	}
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = max(d.RenewDeadline/2, time.Second)
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server for leader election: %w", err)
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}, nil
}

// record makes changes of the leader known as Events, as soon as there is a manager.
func (e *election) record(mgr ctrl.Manager) {
	if e.lease != nil {
		e.lease.LockConfig.EventRecorder = mgr.GetEventRecorderFor(e.lease.Identity()) //nolint:staticcheck // what locks require
	}
}
