package controller

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// settling is how long after the first change of an object other than a Deployment the components are compared: managers write CA bundles
// in several objects one after the other. It doubles, up to maxSettling, with each comparison that finds no drift, so that the cost of
// a client that writes the same object all the time is limited.
const (
	settling    = 10 * time.Second
	maxSettling = time.Hour
)

// state identifies the spec that was applied, and what is in the management cluster.
type state struct {
	spec, deployments string
	others            componentState
}

// drift remembers which components this process has compared with their provider objects.
type drift struct {
	mu     sync.Mutex
	known  map[types.UID]*comparison
	failed map[types.UID]failure
}

// comparison is the last comparison of a provider.
type comparison struct {
	state
	// changed is when a change by another client was noticed; zero if it was not.
	changed time.Time
	// settling is the delay of the next comparison after such a change.
	settling time.Duration
}

// failure is a change that was rejected, or failed and was rolled back.
type failure struct {
	// cause identifies the spec, and for a rejection what else it depends on.
	cause string
	until time.Time
}

func newDrift() *drift {
	return &drift{known: map[types.UID]*comparison{}, failed: map[types.UID]failure{}}
}

// fail remembers that a change failed, and until when it is not retried while what identifies its cause is the same.
func (d *drift) fail(uid types.UID, cause string, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed[uid] = failure{cause, until}
}

// failedUntil returns until when a change that failed for one of the causes is not retried; zero if it did not fail.
func (d *drift) failedUntil(uid types.UID, causes ...string) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.failed[uid]; slices.Contains(causes, f.cause) {
		return f.until
	}
	return time.Time{}
}

// due returns whether something changed since the last comparison, and if so, when the next one is due. If only objects of some kinds
// changed, it returns the kinds; nil: everything must be compared.
func (d *drift) due(uid types.UID, s state, now time.Time) (at time.Time, only []schema.GroupVersionKind, changed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.known[uid]
	if last == nil || last.spec != s.spec || last.deployments != s.deployments {
		return now, nil, true
	}
	only = s.others.Changed(last.others)
	switch {
	case len(only) == 0:
		last.changed = time.Time{}
		return time.Time{}, nil, false
	case last.changed.IsZero():
		last.changed = now
	}
	return last.changed.Add(last.settling), only, true
}

// compared remembers a comparison, after which the state is as the spec demands. wrote reports whether it led to writes.
func (d *drift) compared(uid types.UID, s state, wrote bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := &comparison{state: s, settling: settling}
	if last := d.known[uid]; last != nil && last.spec == s.spec && !wrote {
		next.settling = min(2*last.settling, maxSettling)
	}
	d.known[uid] = next
	delete(d.failed, uid)
}

// withdrawn forgets a change that failed.
func (d *drift) withdrawn(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.failed, uid)
}

func (d *drift) forget(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, uid)
	delete(d.failed, uid)
}

// specsOf identifies the specs of Deployments. Changes of their status are not part of it.
func specsOf(deployments []appsv1.Deployment) string {
	var parts []string
	for i := range deployments {
		d := &deployments[i]
		parts = append(parts, fmt.Sprintf("%s %s %d %d", d.Name, d.UID, d.Generation, ptr.Deref(d.Spec.Replicas, 1)))
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}
