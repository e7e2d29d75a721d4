package lifecycle

import (
	"fmt"
	"strings"
	"time"
)

// Answer is the answer of all extensions of a hook.
type Answer struct {
	// RetryAfter is when to call again at the latest. Zero: no extension blocks.
	RetryAfter time.Duration
	// Message is for users.
	Message string
	// Extensions are those that block, "<handler>.<ExtensionConfig>".
	Extensions []string
}

// Blocked is a hook that blocks, and the answer.
type Blocked struct {
	Hook Hook
	Answer
}

// Outcome is what the hooks of a reconcile blocked, and what must be recorded.
type Outcome struct {
	// Blocking are the hooks that block.
	Blocking []Blocked
	// Pending are the hooks that become pending when the plan is applied, and Called those that no longer are.
	Pending, Called []Hook
}

// Record records the answer of a hook, and reports whether it blocks.
func (o *Outcome) Record(hook Hook, answer Answer) (blocks bool) {
	if answer.RetryAfter == 0 {
		return false
	}
	o.Blocking = append(o.Blocking, Blocked{Hook: hook, Answer: answer})
	return true
}

// HoldsCreation reports whether nothing may be created.
func (o Outcome) HoldsCreation() bool {
	for _, b := range o.Blocking {
		if b.Hook == BeforeClusterCreate {
			return true
		}
	}
	return false
}

// RetryAfter returns when the first of the blocking hooks has to be called again. Zero: none blocks.
func (o Outcome) RetryAfter() time.Duration {
	var soonest time.Duration
	for _, b := range o.Blocking {
		if soonest == 0 || b.RetryAfter < soonest {
			soonest = b.RetryAfter
		}
	}
	return soonest
}

// Message says which hooks block.
func (o Outcome) Message() string {
	var out []string
	for _, b := range o.Blocking {
		out = append(out, b.String())
	}
	return strings.Join(out, "; ")
}

// String says that the hook blocks, why, and because of which extensions.
func (b Blocked) String() string {
	text := fmt.Sprintf("hook %q is blocking", b.Hook)
	if b.Message != "" {
		text += ": " + b.Message
	}
	if len(b.Extensions) > 0 {
		text += " (extension " + strings.Join(b.Extensions, ", ") + ")"
	}
	return text
}
