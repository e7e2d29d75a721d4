package manager

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"k8s.io/utils/clock"
)

const (
	// idleInterval is how long a process must be idle.
	idleInterval = time.Minute
	// fewCycles is how many garbage collections an idle process completes in an idleInterval: the runtime starts one every two
	// minutes, and requests for metrics and renewals of leases allocate little.
	fewCycles = 1
	// worthwhile is how much unused memory is returned, at least. It costs a garbage collection, tens of milliseconds.
	worthwhile = 8 << 20
)

// memoryReturner returns unused memory to the operating system while the process is idle. It is a manager.Runnable.
//
// The Go runtime keeps what a burst of work needed: after the creation of a few hundred Clusters, half of a manager's memory
// is unused, for as long as the manager runs.
type memoryReturner struct {
	clock   clock.WithTicker
	read    func() memoryUsage
	release func()
}

// memoryUsage is what the runtime reports.
type memoryUsage struct {
	// cycles is the number of garbage collections, and unused the memory in bytes that is neither used nor returned.
	cycles, unused uint64
}

// newMemoryReturner returns a memoryReturner for this process.
func newMemoryReturner() *memoryReturner {
	return &memoryReturner{clock: clock.RealClock{}, read: readMemoryUsage, release: debug.FreeOSMemory}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: replicas that do not lead have caches, too.
func (*memoryReturner) NeedLeaderElection() bool { return false }

// Start returns memory until the context ends.
func (r *memoryReturner) Start(ctx context.Context) error {
	ticker := r.clock.NewTicker(idleInterval)
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

func readMemoryUsage() memoryUsage {
	samples := []metrics.Sample{{Name: "/gc/cycles/automatic:gc-cycles"}, {Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(samples)
	return memoryUsage{cycles: samples[0].Value.Uint64(), unused: samples[1].Value.Uint64()}
}
