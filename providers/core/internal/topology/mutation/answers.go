package mutation

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/patches"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
)

const (
	// reuseFor is how long an answer is used again, unless its ExtensionConfig promises more. It is less than the default period of
	// resyncs, with which an upgraded extension takes effect on all Clusters.
	reuseFor = 5 * time.Minute
	// maxAnswers and maxSize, in bytes per answer, bound the memory. Of larger ones, only the effect is kept.
	maxAnswers = 8192
	maxSize    = 64 << 10
)

// question identifies a request to a version of a handler.
type question [sha256.Size]byte

// questionOf returns the question of a request, with the settings that override those of the ExtensionConfig.
func questionOf(target *extension.Target, settings map[string]string, request any) (question, error) {
	encoded, err := json.Marshal([]any{target.Version(), settings, request})
	return sha256.Sum256(encoded), err
}

// answer is an answer to GeneratePatches, DiscoverVariables or GenerateUpgradePlan; for ValidateTopology, it is empty.
type answer struct {
	patches   []patches.Patch
	variables []clusterv1.ClusterClassVariable
	upgrades  upgrade.Chain
	// effect identifies the resulting templates: other operations with the same result are no difference.
	effect [sha256.Size]byte
	// size is that of the patches or variables, in bytes.
	size int
	// valid is set by answers if the answer can be used again, and not only compared.
	valid bool
}

// answerOf decodes a response. It is an error if a patch is not for one of the items, or cannot be applied.
func answerOf(
	ctx context.Context, call patches.Call, uids map[types.UID]int, items []runtimehooksv1.GeneratePatchesResponseItem,
) (answer, error) {
	out := answer{}
	for i := range items {
		n, ok := uids[items[i].UID]
		if !ok {
			return answer{}, fmt.Errorf("extension %s returned a patch with a uid that is not in the request", call.Handler)
		}
		patch := patches.Patch{Item: n, Type: patches.PatchType(items[i].PatchType), Patch: items[i].Patch}
		out.patches = append(out.patches, patch)
		out.size += len(patch.Patch)
	}
	templates, err := patches.ApplyAll(ctx, call.Items, out.patches, patches.AnswerBudget(call.Items))
	if failed, ok := errors.AsType[*patches.PatchError](err); ok {
		holder := &call.Items[out.patches[failed.Patch].Item].Holder
		return answer{}, fmt.Errorf("extension %s returned an invalid patch for %s of %s %s: patch %d: %w",
			call.Handler, holder.FieldPath, holder.Kind, holder.Name, failed.Patch, failed.Err)
	}
	if err != nil {
		return answer{}, err
	}
	encoded, err := json.Marshal(templates)
	out.effect = sha256.Sum256(encoded)
	return out, err
}

// answers keeps the latest answers; the least recently used are dropped.
type answers struct {
	clock   clock.PassiveClock
	entries *lru.Cache
}

type entry struct {
	answer
	// until is when to ask again. Zero: never.
	until time.Time
}

func newAnswers(clock clock.PassiveClock) *answers {
	return &answers{clock: clock, entries: lru.New(maxAnswers)}
}

// get returns the last answer to a question, an empty one if there is none. Unless it is valid, it is for comparison, and for calls that
// fail.
func (a *answers) get(q question) answer {
	found, ok := a.entries.Get(q)
	if !ok {
		return answer{}
	}
	e := found.(entry)
	e.valid = e.valid && (e.until.IsZero() || a.clock.Now().Before(e.until))
	return e.answer
}

func (a *answers) put(q question, latest answer, cacheable bool) {
	e := entry{answer: latest}
	e.valid = latest.size <= maxSize
	if !e.valid {
		e.patches, e.variables = nil, nil
	}
	if !cacheable {
		e.until = a.clock.Now().Add(reuseFor)
	}
	a.entries.Add(q, e)
}
