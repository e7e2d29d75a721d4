package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Action is the effect of a fault.
type Action string

// Actions on the request that triggers the fault.
const (
	// KillAfter forwards it, then kills the manager before it gets the response.
	KillAfter Action = "kill-after"
	// KillBefore kills the manager and does not forward it.
	KillBefore Action = "kill-before"
	// LoseAnswer forwards it, and breaks the connection instead of responding.
	LoseAnswer Action = "lose-answer"
	// TimeOut forwards it, and responds 504 after For.
	TimeOut Action = "time-out"
	// Fail500, Conflict and TooMany forward it, but respond 500, 409 or 429.
	Fail500  Action = "500"
	Conflict Action = "409"
	TooMany  Action = "429"
	// Refuse breaks the connection without forwarding it.
	Refuse Action = "refuse"
	// Reject responds 500 without forwarding it, as when a webhook is unreachable.
	Reject Action = "reject"
	// BlackHole does not respond for For, then breaks the connection, without forwarding it.
	BlackHole Action = "black-hole"
	// Stall forwards it, sends half of the response body, and breaks the connection after For.
	Stall Action = "stall"
)

// Actions on the watches that Fault.On selects, for some time. The request that triggers the fault is forwarded.
const (
	// Freeze delays all events until the fault ends.
	Freeze Action = "freeze"
	// Touch changes an annotation of all Machines before the request, and freezes the watches once these events are
	// delivered: a manager sees that its Machines change, but not its own latest writes.
	Touch Action = "touch"
	// Sicken is Touch that instead marks the Nodes of all Machines unhealthy, except the one in the request: the manager
	// may select another Machine for deletion.
	Sicken Action = "sicken"
	// Delay delays each event by a quarter of the duration.
	Delay Action = "delay"
	// Cut ends the watches.
	Cut Action = "cut"
	// Gone ends the watches with status 410: their resource version is too old.
	Gone Action = "gone"
	// Travel does the same, returns the state before the request for the list that follows, and delays the events after it,
	// as if the manager were connected to a replica of the API server that lags behind.
	Travel Action = "travel"
	// TravelRestart kills the manager after the request, and restarts it with such a replica.
	TravelRestart Action = "travel-restart"
)

// Actions on all requests that Fault.On selects, for some time; usually those to a workload cluster. The request that
// triggers the fault is forwarded, unless it is one of them.
const (
	// Unreachable refuses connections.
	Unreachable Action = "unreachable"
	// Blind does not respond.
	Blind Action = "blind"
	// Hang stops in the middle of responses.
	Hang Action = "hang"
	// Flood sends endless responses.
	Flood Action = "flood"
)

// Suspend stops the manager when it sends the request, forwards the request after For, and continues the manager:
// meanwhile, another replica takes over.
const Suspend Action = "suspend"

// actions returns all actions.
func actions() []Action {
	return []Action{
		KillAfter, KillBefore, LoseAnswer, TimeOut, Fail500, Conflict, TooMany, Refuse, Reject, BlackHole, Stall,
		Freeze, Touch, Sicken, Delay, Cut, Gone, Travel, TravelRestart, Unreachable, Blind, Hang, Flood, Suspend,
	}
}

// Lasts reports whether the action affects more than the request that triggers it.
func (a Action) Lasts() bool {
	return a.Partitions() || slices.Contains([]Action{Freeze, Touch, Sicken, Delay, Cut, Gone, Travel, TravelRestart}, a)
}

// Partitions reports whether the action makes API servers or webhooks unreachable.
func (a Action) Partitions() bool {
	return slices.Contains([]Action{Unreachable, Blind, Hang, Flood}, a)
}

// Breaks reports whether the action breaks the connection instead of responding.
func (a Action) Breaks() bool {
	return slices.Contains([]Action{LoseAnswer, Refuse, BlackHole, Stall}, a)
}

// defaultFor is the default duration of faults.
const defaultFor = 3 * time.Second

// Fault is one fault of a run.
type Fault struct {
	// When selects requests; the Nth of them, counted from 1, triggers the fault.
	When Kind
	Nth  int
	// Do is the effect.
	Do Action
	// For is the duration, for actions that have one. Defaults to 3 s.
	For time.Duration
	// On selects the requests and watches that a lasting fault affects, After is how many events are delivered before it begins.
	On    Kind
	After int
}

// String returns <kind>#<n>=<action>[(<duration>)][><kind>[+<n>]].
func (f Fault) String() string {
	text := fmt.Sprintf("%s#%d=%s", f.When, f.Nth, f.Do)
	if f.For != 0 {
		text += "(" + f.For.String() + ")"
	}
	if f.Do.Lasts() {
		text += ">" + f.On.String()
	}
	if f.After > 0 {
		text += "+" + strconv.Itoa(f.After)
	}
	return text
}

// Parse parses the output of String.
func Parse(text string) (Fault, error) {
	when, do, ok := strings.Cut(text, "=")
	kind, number, numbered := strings.Cut(when, "#")
	if !ok || !numbered {
		return Fault{}, fmt.Errorf("fault %q must be <manager>:<verb>:<resource>#<n>=<action>", text)
	}
	f := Fault{}
	var err error
	if f.When, err = ParseKind(kind); err != nil {
		return Fault{}, fmt.Errorf("fault %q: %w", text, err)
	}
	if f.Nth, err = strconv.Atoi(number); err != nil || f.Nth < 1 {
		return Fault{}, fmt.Errorf("fault %q: %q must be a positive number", text, number)
	}
	do, on, lasts := strings.Cut(do, ">")
	if lasts {
		if err := f.parseOn(on); err != nil {
			return Fault{}, fmt.Errorf("fault %q: %w", text, err)
		}
	}
	action, duration, timed := strings.Cut(strings.TrimSuffix(do, ")"), "(")
	if f.Do = Action(action); !slices.Contains(actions(), f.Do) {
		return Fault{}, fmt.Errorf("fault %q: unknown action %q", text, action)
	}
	if f.Do.Lasts() != lasts {
		return Fault{}, fmt.Errorf("fault %q: ><manager>:<verb>:<resource> is required for lasting faults, and invalid for others", text)
	}
	if timed {
		if f.For, err = time.ParseDuration(duration); err != nil {
			return Fault{}, fmt.Errorf("fault %q: %w", text, err)
		}
	}
	return f, nil
}

func (f *Fault) parseOn(text string) error {
	on, after, counted := strings.Cut(text, "+")
	var err error
	if counted {
		if f.After, err = strconv.Atoi(after); err != nil {
			return err
		}
	}
	f.On, err = ParseKind(on)
	return err
}

// Duration returns For or its default.
func (f Fault) Duration() time.Duration {
	if f.For == 0 {
		return defaultFor
	}
	return f.For
}
