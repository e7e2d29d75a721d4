package script

import (
	"slices"
	"sync"
	"time"
)

// Ongoing holds the lasting faults that have begun: stale caches and partitions. It is safe for concurrent use.
type Ongoing struct {
	mu      sync.Mutex
	active  []*ongoingFault
	changed chan struct{} // closed at the next change
}

// ongoingFault is a lasting fault that has begun.
type ongoingFault struct {
	Fault
	// namespaces are the runs whose workload clusters it affects. Empty: all.
	namespaces []string
	// until is when it ends. Zero: it takes effect after left more events.
	until time.Time
	left  int
	// ended and listed are the kinds whose watch was ended and whose stale list was returned: both happen once.
	ended, listed map[Kind]bool
}

func newOngoing() *Ongoing { return &Ongoing{changed: make(chan struct{})} }

// selects reports whether the fault affects requests of a kind. namespace is the run's, for requests to workload clusters.
func (one *ongoingFault) selects(kind Kind, namespace string) bool {
	return one.On.Selects(kind) && (!kind.Workload || len(one.namespaces) == 0 || slices.Contains(one.namespaces, namespace))
}

func (v *Ongoing) notify() {
	close(v.changed)
	v.changed = make(chan struct{})
}

// Begin starts a fault. namespaces restrict it to the workload clusters of these runs.
func (v *Ongoing) Begin(f Fault, namespaces ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	one := &ongoingFault{Fault: f, namespaces: namespaces, left: f.After, ended: map[Kind]bool{}, listed: map[Kind]bool{}}
	if f.After == 0 {
		one.until = now.Add(f.Duration())
	}
	v.active = append(v.active, one)
	v.notify()
}

// Clear ends all faults.
func (v *Ongoing) Clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.active = nil
	v.notify()
}

// Delivery is how the events of a watch are delivered.
type Delivery struct {
	// Hold is how long no event is delivered.
	Hold time.Duration
	// Delay is added to each event.
	Delay time.Duration
	// Cut ends the watch, Gone with the error that its resource version is too old.
	Cut, Gone bool
	// Changed is closed when faults begin or end.
	Changed <-chan struct{}
}

// Delivery returns how the events of a kind are delivered. namespace is the run's, for watches of workload clusters.
func (v *Ongoing) Delivery(kind Kind, namespace string) Delivery {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := Delivery{Changed: v.changed}
	now := time.Now()
	for _, one := range v.active {
		if !one.selects(kind, namespace) || one.until.IsZero() {
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

// delayShare is the ratio of a fault's duration to the delay of each event.
const delayShare = 4

// Delivered counts an event of a kind.
func (v *Ongoing) Delivered(kind Kind) {
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

// TakeStale reports whether to return the list of a kind from before the fault. It does so once per fault and kind.
func (v *Ongoing) TakeStale(kind Kind) bool {
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

// HasStale returns what TakeStale would return.
func (v *Ongoing) HasStale(kind Kind) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.active {
		if (one.Do == Travel || one.Do == TravelRestart) && one.On.Selects(kind) && !one.listed[kind] {
			return true
		}
	}
	return false
}

// Blocked returns the fault that keeps requests of a kind from getting a response, or "", and how long it lasts. namespace
// is the run's, for requests to workload clusters.
func (v *Ongoing) Blocked(kind Kind, namespace string) (Action, time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	for _, one := range v.active {
		if one.Do.Partitions() && one.selects(kind, namespace) && now.Before(one.until) {
			return one.Do, one.until.Sub(now)
		}
	}
	return "", 0
}

// Changed returns a channel that is closed when a fault begins or ends.
func (v *Ongoing) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}
