package topology

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	runtimecatalog "sigs.k8s.io/cluster-api/exp/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/core/internal/extension"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Caller calls all extensions of a hook: *extension.Client.
type Caller interface {
	CallAll(ctx context.Context, hook runtimecatalog.Hook, forObject client.Object, request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) ([]extension.Answer, error)
}

// lifecycleHooks are Hooks that call extensions.
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

// Ask implements Hooks.
func (h *lifecycleHooks) Ask(ctx context.Context, cluster *clusterv1.Cluster, call lifecycle.Call) (lifecycle.Answer, error) {
	question := fmt.Sprint(call, cluster.Generation, cluster.Labels, cluster.Annotations)
	if answer, ok := h.recall(cluster.UID, question); ok {
		return answer, nil
	}
	hook, request, response, err := Message(cluster, call)
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

// Message returns the hook of a call, its request, and an empty response.
func Message(cluster *clusterv1.Cluster, call lifecycle.Call) (runtimecatalog.Hook, runtimehooksv1.RequestObject, runtimehooksv1.ResponseObject, error) {
	sent := extension.Sent(cluster)
	switch call.Hook {
	case lifecycle.BeforeClusterCreate:
		return runtimehooksv1.BeforeClusterCreate, &runtimehooksv1.BeforeClusterCreateRequest{Cluster: sent}, &runtimehooksv1.BeforeClusterCreateResponse{}, nil
	case lifecycle.AfterControlPlaneInitialized:
		return runtimehooksv1.AfterControlPlaneInitialized, &runtimehooksv1.AfterControlPlaneInitializedRequest{Cluster: sent},
			&runtimehooksv1.AfterControlPlaneInitializedResponse{}, nil
	case lifecycle.BeforeClusterUpgrade:
		return runtimehooksv1.BeforeClusterUpgrade, &runtimehooksv1.BeforeClusterUpgradeRequest{
			Cluster: sent, FromKubernetesVersion: call.From, ToKubernetesVersion: call.To,
		}, &runtimehooksv1.BeforeClusterUpgradeResponse{}, nil
	case lifecycle.AfterControlPlaneUpgrade:
		return runtimehooksv1.AfterControlPlaneUpgrade, &runtimehooksv1.AfterControlPlaneUpgradeRequest{Cluster: sent, KubernetesVersion: call.To},
			&runtimehooksv1.AfterControlPlaneUpgradeResponse{}, nil
	case lifecycle.AfterClusterUpgrade:
		return runtimehooksv1.AfterClusterUpgrade, &runtimehooksv1.AfterClusterUpgradeRequest{Cluster: sent, KubernetesVersion: call.To},
			&runtimehooksv1.AfterClusterUpgradeResponse{}, nil
	case lifecycle.BeforeClusterDelete:
		return runtimehooksv1.BeforeClusterDelete, &runtimehooksv1.BeforeClusterDeleteRequest{Cluster: sent}, &runtimehooksv1.BeforeClusterDeleteResponse{}, nil
	}
	return nil, nil, nil, fmt.Errorf("unknown lifecycle hook %q", call.Hook)
}

// after calls the hooks of what has been completed, and waits while others block. It is the last step: an extension that fails keeps
// nothing else from being reconciled.
func (c *Controller) after(ctx context.Context, s *scope) (step.Result, error) {
	if c.Planner.Hooks == nil {
		return step.Done(), nil
	}
	due := lifecycle.After(s.cluster, s.plan.Versions)
	if len(due) > 0 {
		if result, err := c.waitIfOutdated(ctx, s); err != nil || result.Ends() {
			return result, err
		}
	}
	var errs []error
	for _, call := range due {
		if _, err := c.Planner.Hooks.Ask(ctx, s.cluster, call); err != nil {
			errs = append(errs, err)
			continue
		}
		lifecycle.MarkCalled(s.cluster, call.Hook)
	}
	return waitForHooks(s.plan.Hooks), errors.Join(errs...)
}

// waitForHooks waits until the first of the hooks that block has to be called again.
func waitForHooks(o lifecycle.Outcome) step.Result {
	if len(o.Blocking) == 0 {
		return step.Done()
	}
	return step.WaitAtMost(o.RetryAfter(), o.Message())
}

// beforeDelete holds the deletion of a Cluster while hook BeforeClusterDelete blocks: the Cluster controller waits for the annotation that
// it sets.
func (c *Controller) beforeDelete(ctx context.Context, s *scope) (step.Result, error) {
	if c.Planner.Hooks == nil || lifecycle.IsOKToDelete(s.cluster) {
		return step.Done(), nil
	}
	held := &holds{Hooks: c.Planner.Hooks, cluster: s.cluster}
	blocks, err := held.ask(ctx, lifecycle.Call{Hook: lifecycle.BeforeClusterDelete})
	notReady, waits := errors.AsType[*extension.NotReadyError](err)
	busy, isBusy := errors.AsType[*extension.BusyError](err)
	switch {
	case waits:
		return waitForDiscovery(notReady).WithConditions(deleted(clusterv1.ConditionSeverityInfo, err.Error())), nil
	case isBusy:
		return waitForTurn(busy), nil
	case err != nil:
		return step.Stop().WithConditions(deleted(clusterv1.ConditionSeverityError, err.Error())), err
	case blocks:
		return waitForHooks(held.Outcome).WithConditions(deleted(clusterv1.ConditionSeverityInfo, held.Message())), nil
	}
	lifecycle.MarkOKToDelete(s.cluster)
	return step.Done(), nil
}

// waitForDiscovery waits for an event of an ExtensionConfig: see ofExtension.
func waitForDiscovery(err *extension.NotReadyError) step.Result {
	return step.Wait("ExtensionConfig " + err.Config + " to be discovered")
}

// waitForTurn waits until the server of an extension is less busy.
func waitForTurn(err *extension.BusyError) step.Result {
	return step.WaitAtMost(err.RetryAfter(), "a turn to call extension "+err.Handler)
}

// deleted returns condition TopologyReconciled of a Cluster that is being deleted.
func deleted(severity clusterv1.ConditionSeverity, message string) clusterv1.Condition {
	return condition.False(clusterv1.TopologyReconciledCondition, severity, clusterv1.DeletedReason, "%s", message)
}
