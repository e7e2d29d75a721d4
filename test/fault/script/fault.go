package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/cluster-api/test/fault/request"
)

// Action is what becomes of a request.
type Action string

// What may become of a request.
const (
	// KillAfter forwards it, then kills the manager before it gets the answer.
	KillAfter Action = "kill-after"
	// KillBefore kills the manager and does not forward it.
	KillBefore Action = "kill-before"
	// LoseAnswer forwards it, and breaks the connection instead of answering.
	LoseAnswer Action = "lose-answer"
	// TimeOut forwards it, and answers 504 after For.
	TimeOut Action = "time-out"
	// Fail500, Conflict and TooMany forward it, and answer 500, 409 or 429 all the same.
	Fail500  Action = "500"
	Conflict Action = "409"
	TooMany  Action = "429"
	// Refuse breaks the connection without forwarding it.
	Refuse Action = "refuse"
	// Reject answers 500 without forwarding it, as when a webhook cannot be reached.
	Reject Action = "reject"
	// BlackHole answers nothing for For and then breaks the connection, without forwarding it.
	BlackHole Action = "black-hole"
	// Stall forwards it, answers half of the body, nothing more for For, and then breaks the connection.
	Stall Action = "stall"
)

// What may become, for some time, of the streams of events that Fault.On selects. The request itself goes through.
const (
	// Freeze holds all events, and delivers them afterwards.
	Freeze Action = "freeze"
	// Touch changes an annotation of all Machines before the request, and freezes when that was delivered: a manager sees
	// its Machines change, and not what it has just done to them.
	Touch Action = "touch"
	// Sicken does the same, and says before that the Nodes of all Machines but the one that the request is about are not
	// healthy: which Machine is the first to go is decided anew.
	Sicken Action = "sicken"
	// Delay holds each event for a quarter of the time.
	Delay Action = "delay"
	// Cut ends the streams.
	Cut Action = "cut"
	// Gone ends the streams with the status 410: what has happened since cannot be told any more.
	Gone Action = "gone"
	// Travel does the same, answers the list that follows as it was before the request, and holds the events after it: what a
	// manager sees that is passed on to a replica of the API server that lags behind.
	Travel Action = "travel"
	// TravelRestart kills the manager after the request, and lets it start on such a replica.
	TravelRestart Action = "travel-restart"
)

// What may become, for some time, of all requests that Fault.On selects, usually those to a workload cluster. The request
// itself goes through, unless it is one of them.
const (
	// Unreachable refuses connections.
	Unreachable Action = "unreachable"
	// Blind answers nothing.
	Blind Action = "blind"
	// Hang stops in the middle of answers.
	Hang Action = "hang"
	// Flood answers without end.
	Flood Action = "flood"
)

// Suspend stops the manager when it sends the request, forwards the request after For, and lets the manager go on: it was
// on its way, or its sender stood still, while another replica took over.
const Suspend Action = "suspend"

// actions are all of them.
func actions() []Action {
	return []Action{
		KillAfter, KillBefore, LoseAnswer, TimeOut, Fail500, Conflict, TooMany, Refuse, Reject, BlackHole, Stall,
		Freeze, Touch, Sicken, Delay, Cut, Gone, Travel, TravelRestart, Unreachable, Blind, Hang, Flood, Suspend,
	}
}

// Lasts reports whether the action is about other requests than the one that triggers it.
func (a Action) Lasts() bool {
	return a.Parts() || slices.Contains([]Action{Freeze, Touch, Sicken, Delay, Cut, Gone, Travel, TravelRestart}, a)
}

// Parts reports whether the action parts managers from what they talk to.
func (a Action) Parts() bool { return slices.Contains([]Action{Unreachable, Blind, Hang, Flood}, a) }

// Breaks reports whether the action ends the connection instead of answering.
func (a Action) Breaks() bool {
	return slices.Contains([]Action{LoseAnswer, Refuse, BlackHole, Stall}, a)
}

// Kills reports whether the action kills the manager.
func (a Action) Kills() bool { return a == KillAfter || a == KillBefore || a == TravelRestart }

// defaultFor is how long faults with a duration last when it is not given.
const defaultFor = 3 * time.Second

// Fault is one fault of a run.
type Fault struct {
	// When selects requests; the Nth of them, counted from 1, triggers the fault.
	When request.Kind
	Nth  int
	// Do is what becomes of it.
	Do Action
	// For is how long that lasts, for actions that have a duration.
	For time.Duration
	// On selects what suffers from a fault that lasts, and After is how many events pass before it begins.
	On    request.Kind
	After int
}

// String is <kind>#<n>=<action>[(<duration>)][><kind>[+<n>]].
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

// Parse reads what String writes.
func Parse(text string) (Fault, error) {
	when, do, ok := strings.Cut(text, "=")
	kind, number, numbered := strings.Cut(when, "#")
	if !ok || !numbered {
		return Fault{}, fmt.Errorf("fault %q is not <manager>:<verb>:<resource>#<n>=<action>", text)
	}
	f := Fault{}
	var err error
	if f.When, err = request.ParseKind(kind); err != nil {
		return Fault{}, fmt.Errorf("fault %q: %w", text, err)
	}
	if f.Nth, err = strconv.Atoi(number); err != nil || f.Nth < 1 {
		return Fault{}, fmt.Errorf("fault %q: %q is not the number of a request", text, number)
	}
	do, on, lasts := strings.Cut(do, ">")
	if lasts {
		if err := f.parseOn(on); err != nil {
			return Fault{}, fmt.Errorf("fault %q: %w", text, err)
		}
	}
	action, duration, timed := strings.Cut(strings.TrimSuffix(do, ")"), "(")
	if f.Do = Action(action); !slices.Contains(actions(), f.Do) {
		return Fault{}, fmt.Errorf("fault %q: there is no action %q", text, action)
	}
	if f.Do.Lasts() != lasts {
		return Fault{}, fmt.Errorf("fault %q: what lasts, and nothing else, ends with ><manager>:<verb>:<resource>", text)
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
	f.On, err = request.ParseKind(on)
	return err
}

// Duration is how long the fault lasts.
func (f Fault) Duration() time.Duration {
	if f.For == 0 {
		return defaultFor
	}
	return f.For
}
