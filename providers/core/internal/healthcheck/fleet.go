package healthcheck

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/healthcheck/diagnosis"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// fleetAge is how old the count of unhealthy Machines may be that remediations depend on: when a network is cut, all checks ask for it.
	fleetAge = 5 * time.Second
	// brakeBackstop is the delay before a check that the fleet holds back is diagnosed again: the Machines of others have no event for it.
	brakeBackstop = 30 * time.Second
)

// fleet counts the unhealthy Machines of all Clusters, if a remediation is about to begin.
type fleet struct {
	machines client.Reader
	limits   diagnosis.FleetLimits
	clock    clock.PassiveClock

	mu      sync.Mutex
	counted time.Time
	brake   *diagnosis.Brake
}

// held returns why no Machine of any Cluster is remediated; nil if they are.
func (f *fleet) held(ctx context.Context) (*diagnosis.Brake, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	if !f.counted.IsZero() && now.Sub(f.counted) < fleetAge {
		return f.brake, nil
	}
	list := &clusterv1.MachineList{}
	if err := f.machines.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	f.counted, f.brake = now, f.limits.Exceeded(diagnosis.FleetOf(list.Items))
	return f.brake, nil
}

// plan diagnoses Machines. If a remediation has to begin, the fleet decides, too.
func (c *Controller) plan(ctx context.Context, in diagnosis.Input) (*diagnosis.Plan, error) {
	p, err := diagnosis.New(in)
	if err != nil {
		return nil, step.Terminal(err)
	}
	if !p.Allowed || !p.Begins() {
		return p, nil
	}
	p.Brake, err = c.fleet.held(ctx)
	return p, err
}
