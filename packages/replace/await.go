package replace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/packages/apply"
)

const (
	// troublePoll is how often Pods are checked for failures that do not pass.
	troublePoll = 2 * time.Second
	// maxRestarts is how often a container may crash: once or twice can be due to what starts at the same time.
	maxRestarts = 3
)

// await waits until a Deployment is available, or until it is clear that it will not be.
func (r *run) await(ctx context.Context, key client.ObjectKey) error {
	r.report("waiting for Deployment %s", key)
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for {
			select {
			case <-watched.Done():
				return
			case <-time.After(troublePoll):
			}
			if reason, permanent := r.trouble(watched, key); permanent {
				cancel(fmt.Errorf("Deployment %s does not start: %s: see `kubectl -n %s describe pods`", key, reason, key.Namespace))
			}
		}
	}()
	err := apply.WaitAvailable(watched, r.Client, key, r.Timeout, func(reason string) {
		r.report("waiting for Deployment %s: %s", key, reason)
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	if cause := context.Cause(watched); cause != nil {
		err = cause
	} else if reason, _ := r.trouble(ctx, key); reason != "" && !strings.Contains(err.Error(), reason) {
		err = fmt.Errorf("%w: %s", err, reason)
	}
	if r.lenient {
		r.note(err.Error())
		return nil
	}
	return err
}

func (r *run) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, text)
}

// trouble returns why a Pod of the latest version of a Deployment does not run, "" if that is unknown; permanent is whether
// waiting is pointless.
func (r *run) trouble(ctx context.Context, key client.ObjectKey) (reason string, permanent bool) {
	d := &appsv1.Deployment{}
	if err := r.Client.Get(ctx, key, d); err != nil {
		return "", false
	}
	if reason := apply.Stuck(d); reason != "" {
		return reason, true
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return "", false
	}
	sets, pods := &appsv1.ReplicaSetList{}, &corev1.PodList{}
	where := []client.ListOption{client.InNamespace(key.Namespace), client.MatchingLabelsSelector{Selector: selector}}
	if err := errors.Join(r.Client.List(ctx, sets, where...), r.Client.List(ctx, pods, where...)); err != nil {
		return "", false
	}
	for _, set := range sets.Items {
		if set.Annotations[revisionAnnotation] != d.Annotations[revisionAnnotation] || !metav1.IsControlledBy(&set, d) {
			continue
		}
		for i := range pods.Items {
			if !metav1.IsControlledBy(&pods.Items[i], &set) {
				continue
			}
			if reason, permanent := failure(&pods.Items[i]); reason != "" {
				return reason, permanent
			}
		}
	}
	return "", false
}

// failure returns why a Pod does not run, "" if it does or the reason is unknown, and whether that is permanent.
func failure(p *corev1.Pod) (reason string, permanent bool) {
	for _, c := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
		waiting := c.State.Waiting
		if waiting == nil {
			continue
		}
		switch waiting.Reason {
		case "CrashLoopBackOff":
			reason = fmt.Sprintf("container %s of Pod %s has crashed %d times", c.Name, p.Name, c.RestartCount)
			if t := c.LastTerminationState.Terminated; t != nil {
				reason += fmt.Sprintf(", with exit code %d", t.ExitCode)
			}
			return reason, c.RestartCount >= maxRestarts
		case "", "ContainerCreating", "PodInitializing":
		default:
			reason = apply.Explanation(fmt.Sprintf("container %s of Pod %s", c.Name, p.Name), waiting.Reason, waiting.Message)
			return reason, waiting.Reason == "InvalidImageName"
		}
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			if condition.Reason == "" && condition.Message == "" {
				return fmt.Sprintf("Pod %s is not scheduled", p.Name), false
			}
			return apply.Explanation("Pod "+p.Name, condition.Reason, condition.Message), false
		}
	}
	return "", false
}
