package controller

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
)

// verified remembers which components were compared with their provider objects by this process.
type verified struct {
	mu     sync.Mutex
	seen   map[types.UID]string
	failed map[types.UID]failure
}

// failure is a change that failed, and was put back.
type failure struct {
	hash  string
	until time.Time
}

func newVerified() *verified {
	return &verified{seen: map[types.UID]string{}, failed: map[types.UID]failure{}}
}

// fail remembers that the change to a spec failed, and until when it is not tried again.
func (v *verified) fail(uid types.UID, hash string, until time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failed[uid] = failure{hash, until}
}

// failedUntil returns until when the change to a spec is not tried again; zero if it did not fail.
func (v *verified) failedUntil(uid types.UID, hash string) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f := v.failed[uid]; f.hash == hash {
		return f.until
	}
	return time.Time{}
}

// is reports whether the components had this state when they were last compared.
func (v *verified) is(uid types.UID, state string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	seen, ok := v.seen[uid]
	return ok && seen == state
}

func (v *verified) set(uid types.UID, state string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen[uid] = state
	delete(v.failed, uid)
}

func (v *verified) forget(uid types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.seen, uid)
	delete(v.failed, uid)
}

// stateOf identifies what was applied and the specs of the Deployments. Changes of their status are not part of it.
func stateOf(hash string, deployments []appsv1.Deployment) string {
	var parts []string
	for i := range deployments {
		d := &deployments[i]
		parts = append(parts, fmt.Sprintf("%s %s %d", d.Name, d.UID, d.Generation))
	}
	slices.Sort(parts)
	return hash + "\n" + strings.Join(parts, "\n")
}
