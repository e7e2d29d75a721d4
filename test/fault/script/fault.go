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

// actions are all of them.
func actions() []Action {
	return []Action{KillAfter, KillBefore, LoseAnswer, TimeOut, Fail500, Conflict, TooMany, Refuse, Reject, BlackHole, Stall}
}

// Kills reports whether the action kills the manager.
func (a Action) Kills() bool { return a == KillAfter || a == KillBefore }

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
}

// String is <kind>#<n>=<action>[(<duration>)].
func (f Fault) String() string {
	text := fmt.Sprintf("%s#%d=%s", f.When, f.Nth, f.Do)
	if f.For != 0 {
		text += "(" + f.For.String() + ")"
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
	action, duration, timed := strings.Cut(strings.TrimSuffix(do, ")"), "(")
	if f.Do = Action(action); !slices.Contains(actions(), f.Do) {
		return Fault{}, fmt.Errorf("fault %q: there is no action %q", text, action)
	}
	if timed {
		if f.For, err = time.ParseDuration(duration); err != nil {
			return Fault{}, fmt.Errorf("fault %q: %w", text, err)
		}
	}
	return f, nil
}

// Duration is how long the fault lasts.
func (f Fault) Duration() time.Duration {
	if f.For == 0 {
		return defaultFor
	}
	return f.For
}
