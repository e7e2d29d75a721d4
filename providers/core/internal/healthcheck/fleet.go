package healthcheck

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
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
	// dueAge is how long a Machine counts since a check wanted to remediate it: a check that is held back asks again before.
	dueAge = 2 * brakeBackstop
)

// fleet counts the unhealthy Machines of all Clusters, if a remediation is about to begin.
type fleet struct {
	machines client.Reader
	limits   diagnosis.FleetLimits
	clock    clock.PassiveClock

	mu      sync.Mutex
	counted time.Time
	census  *diagnosis.Census
	// due are the Machines that checks wanted to remediate lately. Those that are remediated are marked in the cache only some time later,
	// and those that are held back are not marked.
	due map[types.UID]due
}

// due is a Machine, and when a check wanted to remediate it last.
type due struct {
	machine *clusterv1.Machine
	last    time.Time
}

// held returns why no Machine of any Cluster is remediated; nil if they are. machines are those whose remediation is due: they count
// from now on, so that of many that fail at the same time, no more are remediated than the limits allow.
func (f *fleet) held(ctx context.Context, machines []*clusterv1.Machine) (*diagnosis.Brake, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	if f.census == nil || now.Sub(f.counted) >= fleetAge {
		if err := f.recount(ctx, now); err != nil {
			return nil, err
		}
	}
	for _, m := range machines {
		f.due[m.UID] = due{m, now}
		f.census.Due(m)
	}
	return f.limits.Exceeded(f.census.Fleet()), nil
}

func (f *fleet) recount(ctx context.Context, now time.Time) error {
	list := &clusterv1.MachineList{}
	if err := f.machines.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	exists := map[types.UID]bool{}
	for i := range list.Items {
		exists[list.Items[i].UID] = true
	}
	f.counted, f.census = now, diagnosis.NewCensus(list.Items)
	if f.due == nil {
		f.due = map[types.UID]due{}
	}
	maps.DeleteFunc(f.due, func(uid types.UID, d due) bool { return !exists[uid] || now.Sub(d.last) >= dueAge })
	for _, d := range f.due {
		f.census.Due(d.machine)
	}
	return nil
}

// plan diagnoses Machines. If a remediation has to begin, the fleet decides, too.
func (c *Controller) plan(ctx context.Context, in diagnosis.Input) (*diagnosis.Plan, error) {
	p, err := diagnosis.New(in)
	if err != nil {
		return nil, step.Terminal(err)
	}
	if machines := p.Due(); p.Allowed && len(machines) > 0 {
		p.Brake, err = c.fleet.held(ctx, machines)
	}
	return p, err
}
