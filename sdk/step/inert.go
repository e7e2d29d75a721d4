package step

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// inert remembers, per object, the last status patch that changed nothing. API servers drop fields that the definition of a kind does not
// have: with that of an earlier release, the difference between what an object has and what it should have remains, and each reconcile
// would send the same patch.
type inert struct {
	mu      sync.Mutex
	patches map[types.NamespacedName]inertPatch
}

type inertPatch struct {
	// version is the resource version of the object, before and after the patch.
	version string
	sum     fingerprint
}

// fingerprint identifies the content of a patch.
type fingerprint [sha256.Size]byte

// has reports whether a patch changed nothing in this version of an object. A nil inert remembers nothing.
func (i *inert) has(key types.NamespacedName, version string, sum fingerprint) bool {
	if i == nil {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return version != "" && i.patches[key] == inertPatch{version, sum}
}

// sent records a patch with the versions of the object before and after it.
func (i *inert) sent(key types.NamespacedName, before, after string, sum fingerprint) {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if before != after {
		delete(i.patches, key)
		return
	}
	if i.patches == nil {
		i.patches = map[types.NamespacedName]inertPatch{}
	}
	i.patches[key] = inertPatch{after, sum}
}

func (i *inert) forget(key types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.patches, key)
}

// fingerprint returns what identifies a patch, without the times of transitions: a condition that is dropped appears each time as if it
// had just changed.
func (d document) fingerprint() (fingerprint, error) {
	raw, err := json.Marshal(withoutTransitions(map[string]any(d)))
	if err != nil {
		return fingerprint{}, fmt.Errorf("encoding a patch: %w", err)
	}
	return sha256.Sum256(raw), nil
}

func withoutTransitions(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, child := range v {
			if name != "lastTransitionTime" {
				out[name] = withoutTransitions(child)
			}
		}
		return out
	case document:
		return withoutTransitions(map[string]any(v))
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withoutTransitions(v[i])
		}
		return out
	}
	return value
}
