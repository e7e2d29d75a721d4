package topology

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
)

// Caller calls all extensions of a hook: *extension.Client.
type Caller interface {
	CallAll(
		ctx context.Context, hook runtimecatalog.Hook,
		forObject client.Object, request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject,
	) ([]extension.Answer, error)
}

// lifecycleHooks are plan.Hooks that call extensions.
//
// An answer that blocks is used again until it is time to call again, unless spec or metadata of the Cluster change: a Cluster that is
// reconciled often does not call extensions more often, and an extension whose message changes with each call, which changes the
// condition, does not cause the next call by that.
type lifecycleHooks struct {
	caller Caller
	clock  clock.PassiveClock

	mu      sync.Mutex
	answers map[types.UID]map[lifecycle.Hook]blockingAnswer
}

// maxReuse is the longest time that an answer is used again.
const maxReuse = 24 * time.Hour

// blockingAnswer is an answer that blocks.
type blockingAnswer struct {
	lifecycle.Answer
	question string
	until    time.Time
}

func newLifecycleHooks(caller Caller, clock clock.PassiveClock) *lifecycleHooks {
	return &lifecycleHooks{caller: caller, clock: clock, answers: map[types.UID]map[lifecycle.Hook]blockingAnswer{}}
}

// Ask implements plan.Hooks.
func (h *lifecycleHooks) Ask(ctx context.Context, cluster *clusterv1.Cluster, call lifecycle.Call) (lifecycle.Answer, error) {
	question := questionOf(cluster, call)
	if answer, ok := h.recall(cluster.UID, call.Hook, question); ok {
		return answer, nil
	}
	hook, request, response, err := lifecycle.Message(cluster, call)
	if err != nil {
		return lifecycle.Answer{}, err
	}
	answers, err := h.caller.CallAll(ctx, hook, cluster, request, response)
	if err != nil {
		return lifecycle.Answer{}, err
	}
	answer := lifecycle.Answer{Message: response.GetMessage()}
	if retry, ok := response.(runtimehooksv1.RetryResponseObject); ok {
		answer.RetryAfter = min(time.Duration(retry.GetRetryAfterSeconds())*time.Second, maxReuse)
	}
	for _, one := range answers {
		if one.RetryAfter > 0 {
			answer.Extensions = append(answer.Extensions, one.Handler)
		}
	}
	h.remember(cluster.UID, call.Hook, question, answer)
	return answer, nil
}

// questionOf identifies a call for a Cluster.
func questionOf(cluster *clusterv1.Cluster, call lifecycle.Call) string {
	return fmt.Sprint(call, cluster.Generation, cluster.Labels, cluster.Annotations)
}

// remembers reports whether Ask would return an answer without calling an extension. It may be called on nil.
func (h *lifecycleHooks) remembers(cluster *clusterv1.Cluster, call lifecycle.Call) bool {
	if h == nil {
		return false
	}
	_, ok := h.recall(cluster.UID, call.Hook, questionOf(cluster, call))
	return ok
}

// recall returns the last answer, with the time that is left, if it is still valid.
func (h *lifecycleHooks) recall(cluster types.UID, hook lifecycle.Hook, question string) (lifecycle.Answer, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last, ok := h.answers[cluster][hook]
	left := last.until.Sub(h.clock.Now())
	if !ok || last.question != question || left <= 0 {
		return lifecycle.Answer{}, false
	}
	answer := last.Answer
	answer.RetryAfter = left
	return answer, true
}

func (h *lifecycleHooks) remember(cluster types.UID, hook lifecycle.Hook, question string, answer lifecycle.Answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.answers[cluster]
	delete(known, hook)
	switch {
	case answer.RetryAfter > 0:
		if known == nil {
			known = map[lifecycle.Hook]blockingAnswer{}
			h.answers[cluster] = known
		}
		known[hook] = blockingAnswer{Answer: answer, question: question, until: h.clock.Now().Add(answer.RetryAfter)}
	case len(known) == 0:
		delete(h.answers, cluster)
	}
}

// forget drops the answers for a Cluster, or, after a change of the extensions, all answers.
func (h *lifecycleHooks) forget(clusters ...types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(clusters) == 0 {
		clear(h.answers)
	}
	for _, uid := range clusters {
		delete(h.answers, uid)
	}
}
