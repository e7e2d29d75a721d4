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

	"sigs.k8s.io/cluster-api/providers/operator/internal/observed"
)

// settling is how long after the first change of an object other than a Deployment the components are compared: managers write CA bundles
// in several objects one after the other. It doubles, up to maxSettling, with each comparison that finds nothing to put back, so that
// somebody who writes the same object all the time does not cost more and more.
const (
	settling    = 10 * time.Second
	maxSettling = time.Hour
)

// state identifies the spec that was applied, and what is in the management cluster.
type state struct {
	spec, deployments string
	others            observed.State
}

// verified remembers which components were compared with their provider objects by this process.
type verified struct {
	mu     sync.Mutex
	known  map[types.UID]*comparison
	failed map[types.UID]failure
}

// comparison is the last comparison of a provider.
type comparison struct {
	state
	// changed is when another state of others was noticed, zero: it was not.
	changed time.Time
	// settling is how long such a change is given to settle.
	settling time.Duration
}

// failure is a change that failed, and was put back.
type failure struct {
	spec  string
	until time.Time
}

func newVerified() *verified {
	return &verified{known: map[types.UID]*comparison{}, failed: map[types.UID]failure{}}
}

// fail remembers that the change to a spec failed, and until when it is not tried again.
func (v *verified) fail(uid types.UID, spec string, until time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failed[uid] = failure{spec, until}
}

// failedUntil returns until when the change to a spec is not tried again; zero if it did not fail.
func (v *verified) failedUntil(uid types.UID, spec string) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f := v.failed[uid]; f.spec == spec {
		return f.until
	}
	return time.Time{}
}

// due returns when the components are to be compared, false: not before something changes; and if only objects of some kinds changed, which.
func (v *verified) due(uid types.UID, s state, now time.Time) (at time.Time, only []schema.GroupVersionKind, changed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	last := v.known[uid]
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

// set remembers a comparison, after which the state is as the spec demands, and whether there was anything to write.
func (v *verified) set(uid types.UID, s state, wrote bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	next := &comparison{state: s, settling: settling}
	if last := v.known[uid]; last != nil && last.spec == s.spec && !wrote {
		next.settling = min(2*last.settling, maxSettling)
	}
	v.known[uid] = next
	delete(v.failed, uid)
}

func (v *verified) forget(uid types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.known, uid)
	delete(v.failed, uid)
}

// specsOf identifies the specs of Deployments. Changes of their status are not part of it.
func specsOf(deployments []appsv1.Deployment) string {
	var parts []string
	for i := range deployments {
		d := &deployments[i]
		parts = append(parts, fmt.Sprintf("%s %s %d", d.Name, d.UID, d.Generation))
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}
