package script

import (
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/cluster-api/test/fault/request"
)

// Views are the faults of a run that last: they change what managers see of API servers, or whether they see anything. It
// is safe for concurrent use.
type Views struct {
	mu      sync.Mutex
	active  []*view
	changed chan struct{} // closed at the next change
}

// view is a fault that has begun.
type view struct {
	Fault
	// homes are the runs whose workload clusters it is about. Empty: all.
	homes []string
	begun time.Time
	// until is when it ends. Zero: it waits for events to pass first.
	until time.Time
	left  int
	// ended and listed are the kinds to which what happens once has happened: the end of a watch, an old list.
	ended, listed map[request.Kind]bool
}

func newViews() *Views { return &Views{changed: make(chan struct{})} }

// selects reports whether the fault is about a kind of requests, to the workload cluster of a run if they are for one.
func (one *view) selects(kind request.Kind, home string) bool {
	return one.On.Selects(kind) && (!kind.Workload || len(one.homes) == 0 || slices.Contains(one.homes, home))
}

func (v *Views) notify() {
	close(v.changed)
	v.changed = make(chan struct{})
}

// Begin lets a fault begin. If it is about workload clusters, it is about those of some runs.
func (v *Views) Begin(f Fault, homes ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	one := &view{Fault: f, homes: homes, begun: now, left: f.After, ended: map[request.Kind]bool{}, listed: map[request.Kind]bool{}}
	if f.After == 0 {
		one.until = now.Add(f.Duration())
	}
	v.active = append(v.active, one)
	v.notify()
}

// Clear ends all of them.
func (v *Views) Clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.active = nil
	v.notify()
}

// Sight is what becomes of a stream of events now.
type Sight struct {
	// Hold is how long nothing passes.
	Hold time.Duration
	// Delay is how long each event takes.
	Delay time.Duration
	// Cut ends the stream, Gone with the answer that its resource version is too old.
	Cut, Gone bool
	// Changed is closed when this may be different.
	Changed <-chan struct{}
}

// Look tells what becomes of the events of a kind. Those of a workload cluster are of a run's.
func (v *Views) Look(kind request.Kind, home string) Sight {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := Sight{Changed: v.changed}
	now := time.Now()
	for _, one := range v.active {
		if !one.selects(kind, home) || one.until.IsZero() {
			continue
		}
		if one.Do == Cut || one.Do == Gone || one.Do == Travel {
			if !one.ended[kind] {
				one.ended[kind] = true
				s.Cut, s.Gone = s.Cut || one.Do == Cut, s.Gone || one.Do != Cut
			}
		}
		if now.After(one.until) {
			continue
		}
		switch one.Do {
		case Freeze, Touch, Sicken, Travel, TravelRestart, Blind, Hang:
			s.Hold = max(s.Hold, one.until.Sub(now))
		case Delay:
			s.Delay = max(s.Delay, one.Duration()/delayShare)
		case Unreachable, Flood:
			s.Cut = true
		}
	}
	return s
}

// delayShare is how much shorter the delay of each event is than the time for which events are delayed.
const delayShare = 4

// Passed notes that an event of a kind was delivered.
func (v *Views) Passed(kind request.Kind) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.active {
		if !one.until.IsZero() || !one.On.Selects(kind) {
			continue
		}
		if one.left--; one.left <= 0 {
			one.until = time.Now().Add(one.Duration())
			v.notify()
		}
	}
}

// TakeOld reports whether a list of a kind is to be answered as it was when the fault began. That happens once.
func (v *Views) TakeOld(kind request.Kind) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.active {
		if (one.Do == Travel || one.Do == TravelRestart) && one.On.Selects(kind) && !one.listed[kind] {
			one.listed[kind] = true
			return true
		}
	}
	return false
}

// HasOld reports whether TakeOld would.
func (v *Views) HasOld(kind request.Kind) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.active {
		if (one.Do == Travel || one.Do == TravelRestart) && one.On.Selects(kind) && !one.listed[kind] {
			return true
		}
	}
	return false
}

// Blocked tells whether requests of a kind get no answer now, how that looks, and for how long. Those to a workload cluster
// are of a run's.
func (v *Views) Blocked(kind request.Kind, home string) (Action, time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	for _, one := range v.active {
		if one.Do.Parts() && one.selects(kind, home) && now.Before(one.until) {
			return one.Do, one.until.Sub(now)
		}
	}
	return "", 0
}

// Changed is closed when something begins or ends.
func (v *Views) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}
