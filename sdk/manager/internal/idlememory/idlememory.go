// Package idlememory returns memory to the operating system while a process is idle.
//
// The Go runtime keeps what a burst of work needed: after the creation of a few hundred Clusters, half of a manager's memory
// is unused, for as long as the manager runs.
package idlememory

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"k8s.io/utils/clock"
)

const (
	// interval is how long a process must be idle.
	interval = time.Minute
	// fewCycles is how many garbage collections an idle process completes in an interval: the runtime starts one every two
	// minutes, and requests for metrics and renewals of leases allocate little.
	fewCycles = 1
	// worthwhile is how much unused memory is returned, at least. It costs a garbage collection, tens of milliseconds.
	worthwhile = 8 << 20
)

// Returner returns unused memory while the process is idle. It is a manager.Runnable.
type Returner struct {
	clock   clock.WithTicker
	read    func() usage
	release func()
}

// usage is what the runtime reports.
type usage struct {
	// cycles is the number of garbage collections, and unused the memory in bytes that is neither used nor returned.
	cycles, unused uint64
}

// New returns a Returner for this process.
func New() *Returner {
	return &Returner{clock: clock.RealClock{}, read: readUsage, release: debug.FreeOSMemory}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: replicas that do not lead have caches, too.
func (*Returner) NeedLeaderElection() bool { return false }

// Start returns memory until the context ends.
func (r *Returner) Start(ctx context.Context) error {
	ticker := r.clock.NewTicker(interval)
	defer ticker.Stop()
	before := r.read()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		now := r.read()
		if now.cycles-before.cycles <= fewCycles && now.unused >= worthwhile {
			r.release()
			now = r.read()
		}
		before = now
	}
}

func readUsage() usage {
	samples := []metrics.Sample{{Name: "/gc/cycles/automatic:gc-cycles"}, {Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(samples)
	return usage{cycles: samples[0].Value.Uint64(), unused: samples[1].Value.Uint64()}
}
