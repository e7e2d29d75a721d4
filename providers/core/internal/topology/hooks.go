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
	"sigs.k8s.io/cluster-api/providers/core/internal/extension"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
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
	answers map[types.UID]blockingAnswer
}

// blockingAnswer is an answer that blocks. At most one hook blocks a Cluster at a time.
type blockingAnswer struct {
	lifecycle.Answer
	question string
	until    time.Time
}

func newLifecycleHooks(caller Caller, clock clock.PassiveClock) *lifecycleHooks {
	return &lifecycleHooks{caller: caller, clock: clock, answers: map[types.UID]blockingAnswer{}}
}

// Ask implements plan.Hooks.
func (h *lifecycleHooks) Ask(ctx context.Context, cluster *clusterv1.Cluster, call lifecycle.Call) (lifecycle.Answer, error) {
	question := fmt.Sprint(call, cluster.Generation, cluster.Labels, cluster.Annotations)
	if answer, ok := h.recall(cluster.UID, question); ok {
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
		answer.RetryAfter = time.Duration(retry.GetRetryAfterSeconds()) * time.Second
	}
	for _, one := range answers {
		if one.RetryAfter > 0 {
			answer.Extensions = append(answer.Extensions, one.Handler)
		}
	}
	h.remember(cluster.UID, question, answer)
	return answer, nil
}

// recall returns the last answer, with the time that is left, if it is still valid.
func (h *lifecycleHooks) recall(cluster types.UID, question string) (lifecycle.Answer, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last, ok := h.answers[cluster]
	left := last.until.Sub(h.clock.Now())
	if !ok || last.question != question || left <= 0 {
		return lifecycle.Answer{}, false
	}
	answer := last.Answer
	answer.RetryAfter = left
	return answer, true
}

func (h *lifecycleHooks) remember(cluster types.UID, question string, answer lifecycle.Answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.answers, cluster)
	if answer.RetryAfter > 0 {
		h.answers[cluster] = blockingAnswer{Answer: answer, question: question, until: h.clock.Now().Add(answer.RetryAfter)}
	}
}

// forget drops the answer for a Cluster, or, after a change of the extensions, all answers.
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
