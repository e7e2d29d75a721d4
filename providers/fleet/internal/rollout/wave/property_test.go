package wave

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// actual is a Cluster of a simulated fleet, as it is; decisions see copies of it.
type actual struct {
	Cluster
	// fails is set if it never becomes healthy after the change, and takes is how long a change takes otherwise.
	fails bool
	takes time.Duration
	// changed is when its spec was changed last.
	changed time.Time
}

// fleet is a simulated fleet, and a rollout over it.
type fleet struct {
	in       Input
	clusters []*actual
	random   *rand.Rand
	// halted is set once a decision has halted the attempt.
	halted bool
}

// newFleet returns a random fleet with a random strategy.
func newFleet(seed uint64) *fleet {
	f := &fleet{random: rand.New(rand.NewPCG(seed, 1))}
	stages := 1 + f.random.IntN(4)
	strategy := &fleetv1.RolloutStrategy{
		ProgressDeadlineSeconds: ptr.To[int32](300),
		OnFailure:               []fleetv1.RolloutFailureAction{fleetv1.RolloutHalt, fleetv1.RolloutRollback}[f.random.IntN(2)],
		UnhealthyClusters:       []fleetv1.UnhealthyClusters{"", fleetv1.UnhealthyClustersSkip, fleetv1.UnhealthyClustersUpdate}[f.random.IntN(3)],
	}
	for i := range stages {
		s := fleetv1.RolloutStage{Name: fmt.Sprintf("stage-%d", i)}
		if f.random.IntN(2) == 0 {
			s.MaxConcurrent = ptr.To(intstr.FromInt(1 + f.random.IntN(5)))
		} else {
			s.MaxConcurrent = ptr.To(intstr.FromString(fmt.Sprintf("%d%%", f.random.IntN(60))))
		}
		s.MaxFailures = ptr.To(intstr.FromInt(f.random.IntN(4)))
		s.SoakSeconds = ptr.To(int32(f.random.IntN(2) * 120))
		strategy.Stages = append(strategy.Stages, s)
	}
	f.in = Input{
		Strategy: strategy, Open: true, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Change: &fleetv1.RolloutChange{ClassRef: fleetv1.RolloutClassReference{Name: "new"}},
	}
	for i := range 1 + f.random.IntN(40) {
		r := &actual{fails: f.random.IntN(20) == 0, takes: time.Duration(f.random.IntN(200)) * time.Second}
		r.Name, r.UID = fmt.Sprintf("c%d", i), types.UID(fmt.Sprintf("uid-%d-%d", seed, i))
		r.Healthy, r.Settled = f.random.IntN(15) != 0, true
		r.Paused = f.random.IntN(20) == 0
		r.Entry = fleetv1.RolloutEntry{
			Stage: strategy.Stages[f.random.IntN(stages)].Name, State: fleetv1.RolloutStateWaiting, Effect: fleetv1.RolloutReplacing,
		}
		r.Entry.Since.Time = f.in.Now
		f.clusters = append(f.clusters, r)
	}
	return f
}

// observe lets time act on a Cluster.
func (f *fleet) observe(r *actual) {
	if r.changed.IsZero() {
		return
	}
	done := !f.in.Now.Before(r.changed.Add(r.takes)) && (!r.fails || !r.AtTarget)
	r.Settled, r.Healthy, r.Confirmed = done, done, done
	r.Unhealthy, r.Unsettled = "Nodes are missing", "a rollout"
}

// view returns what a decision sees.
func (f *fleet) view() []*Cluster {
	var all []*Cluster
	for _, r := range f.clusters {
		f.observe(r)
		seen := r.Cluster
		all = append(all, &seen)
	}
	return all
}

func (f *fleet) changing() int {
	n := 0
	for _, r := range f.clusters {
		if r.changing() {
			n++
		}
	}
	return n
}

// step decides, and carries out as many of the actions as a process does before it is killed.
func (f *fleet) step(t *testing.T) Decision {
	f.in.Clusters = f.view()
	d := Decide(f.in)
	f.check(t, d)
	limit := len(d.Actions)
	if f.random.IntN(4) == 0 {
		limit = f.random.IntN(limit + 1)
	}
	for _, a := range d.Actions[:limit] {
		f.carryOut(a)
	}
	return d
}

func (f *fleet) carryOut(a Action) {
	for _, r := range f.clusters {
		if r.UID != a.Cluster.UID {
			continue
		}
		r.Entry = a.Cluster.Entry
		switch a.Verb {
		case Start:
			r.AtTarget, r.changed = true, f.in.Now
			r.Entry.Previous = &fleetv1.RolloutPrevious{ClassRef: &fleetv1.RolloutClassReference{Name: "old"}}
		case RollBack:
			r.AtTarget, r.changed = false, f.in.Now
		case Mark:
		}
		f.observe(r)
	}
}

// check checks what must hold for every decision, also if only the first of its actions are carried out.
func (f *fleet) check(t *testing.T, d Decision) {
	t.Helper()
	stageOf, limit := map[string]int{}, map[string]int{}
	for i, s := range f.in.Strategy.Stages {
		stageOf[s.Name] = i
		total := 0
		for _, r := range f.clusters {
			if r.Entry.Stage == s.Name {
				total++
			}
		}
		limit[s.Name] = max(scaled(s.MaxConcurrent, 1, total), 1)
	}
	before, starting := f.changing(), map[string]int{}
	for _, a := range d.Actions {
		if a.Verb != Start {
			if a.Verb == Mark && a.State != fleetv1.RolloutStateUpdating {
				for _, r := range f.clusters {
					if r.UID == a.Cluster.UID && r.changing() {
						before--
					}
				}
			}
			continue
		}
		stage := a.Cluster.Entry.Stage
		starting[stage]++
		if d.Halted != "" || f.halted {
			t.Fatalf("%s is changed after the rollout has halted: %s", a.Cluster.Name, d.HaltedMessage)
		}
		if n := before + starting[stage]; n > limit[stage] {
			t.Fatalf("%d Clusters are in change, stage %s permits %d", n, stage, limit[stage])
		}
		for _, r := range f.clusters {
			if stageOf[r.Entry.Stage] < stageOf[stage] && !r.final() && !d.marks(r.UID) {
				t.Fatalf("%s of stage %s is changed before %s of %s has ended", a.Cluster.Name, stage, r.Name, r.Entry.Stage)
			}
		}
	}
	if len(starting) > 1 {
		t.Fatalf("Clusters of several stages are changed at once: %v", starting)
	}
	f.halted = f.halted || d.Halted != ""
}

// marks reports whether a decision ends a Cluster.
func (d *Decision) marks(uid types.UID) bool {
	for _, a := range d.Actions {
		if a.Cluster.UID == uid && a.Verb == Mark {
			return true
		}
	}
	return false
}

// TestEveryClusterEndsSomewhere simulates rollouts over random fleets, with Clusters that fail, are paused, or unhealthy, processes that
// are killed between two writes, and users that try again.
func TestEveryClusterEndsSomewhere(t *testing.T) {
	for seed := range uint64(500) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := newFleet(seed)
			tries := 0
			for range 3000 {
				d := f.step(t)
				switch {
				case d.Phase == fleetv1.RolloutCompleted && len(d.Actions) == 0:
					f.ended(t)
					return
				case d.Phase == fleetv1.RolloutHalted && f.changing() == 0 && len(d.Actions) == 0:
					if tries++; tries > 3 {
						f.in.Abort = []fleetv1.RolloutAbort{fleetv1.RolloutAbortStop, fleetv1.RolloutAbortRollback}[seed%2]
						break
					}
					f.in.Attempt, f.halted = f.in.Attempt+1, false
					for _, r := range f.clusters {
						r.fails = r.fails && f.random.IntN(2) == 0 // The user has fixed the cause of some.
					}
				case d.Phase == fleetv1.RolloutAborted && len(d.Actions) == 0:
					f.aborted(t)
					return
				}
				f.in.Now = f.in.Now.Add(time.Duration(1+f.random.IntN(60)) * time.Second)
			}
			t.Fatalf("the rollout has not ended: %+v", Decide(f.in))
		})
	}
}

// ended checks that each Cluster was changed, or that it is said why not.
func (f *fleet) ended(t *testing.T) {
	for _, r := range f.clusters {
		switch e := r.Entry; {
		case !r.final():
			t.Errorf("%s is %s although the rollout has ended", r.Name, e.State)
		case e.State == fleetv1.RolloutStateDone && !r.AtTarget:
			t.Errorf("%s is done without the change", r.Name)
		case e.State != fleetv1.RolloutStateDone && e.State != fleetv1.RolloutStateRolledBack && e.Message == "":
			t.Errorf("%s is %s without a reason", r.Name, e.State)
		}
	}
}

// aborted checks that nothing is in change any more, and that everything went back if it was to.
func (f *fleet) aborted(t *testing.T) {
	for _, r := range f.clusters {
		if r.changing() {
			t.Errorf("%s is in change although the rollout was aborted", r.Name)
		}
		if f.in.Abort == fleetv1.RolloutAbortRollback && r.AtTarget && !r.Paused {
			t.Errorf("%s (%s) has the change although it was to go back", r.Name, r.Entry.State)
		}
	}
}
