package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxRestarts is how often a container may crash: once or twice can be due to what starts at the same time.
	maxRestarts = 3
	// maxWarnings bounds what is read about a Pod.
	maxWarnings = 100
)

// RevisionAnnotation is written by the Deployment controller only.
const RevisionAnnotation = "deployment.kubernetes.io/revision"

// Trouble returns why a Pod of the latest version of a Deployment does not run, "" if that is unknown; permanent is whether
// waiting is pointless.
func Trouble(ctx context.Context, c client.Reader, key client.ObjectKey) (reason string, permanent bool) {
	d := &appsv1.Deployment{}
	if err := c.Get(ctx, key, d); err != nil {
		return "", false
	}
	if reason := Stuck(d); reason != "" {
		return reason, true
	}
	for _, p := range latest(ctx, c, d) {
		if reason, permanent := failure(&p); reason != "" {
			return reason, permanent
		}
	}
	return "", false
}

// latest returns the Pods of the latest version of a Deployment; none if they cannot be read.
func latest(ctx context.Context, c client.Reader, d *appsv1.Deployment) []corev1.Pod {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil
	}
	sets, pods := &appsv1.ReplicaSetList{}, &corev1.PodList{}
	where := []client.ListOption{client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector}}
	if err := errors.Join(c.List(ctx, sets, where...), c.List(ctx, pods, where...)); err != nil {
		return nil
	}
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool {
		return !slices.ContainsFunc(sets.Items, func(set appsv1.ReplicaSet) bool {
			return set.Annotations[RevisionAnnotation] == d.Annotations[RevisionAnnotation] && metav1.IsControlledBy(&set, d) &&
				metav1.IsControlledBy(&p, &set)
		})
	})
}

// failure returns why a Pod does not run, "" if it does or the reason is unknown, and whether that is permanent.
func failure(p *corev1.Pod) (reason string, permanent bool) {
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		waiting := c.State.Waiting
		switch {
		case waiting == nil, waiting.Reason == "", starting(waiting):
		case waiting.Reason == "CrashLoopBackOff":
			reason = fmt.Sprintf("container %s of Pod %s has crashed %d times", c.Name, p.Name, c.RestartCount)
			if t := c.LastTerminationState.Terminated; t != nil {
				reason += fmt.Sprintf(", with exit code %d", t.ExitCode)
			}
			return reason, c.RestartCount >= maxRestarts
		default:
			reason = Explanation(fmt.Sprintf("container %s of Pod %s", c.Name, p.Name), waiting.Reason, waiting.Message)
			return reason, waiting.Reason == "InvalidImageName"
		}
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			if condition.Reason == "" && condition.Message == "" {
				return fmt.Sprintf("Pod %s is not scheduled", p.Name), false
			}
			return Explanation("Pod "+p.Name, condition.Reason, condition.Message), false
		}
	}
	return "", false
}

// starting reports whether a container waits only because it, or its Pod, is being created.
func starting(w *corev1.ContainerStateWaiting) bool {
	return w.Reason == "ContainerCreating" || w.Reason == "PodInitializing"
}

// Creating reports whether a Pod is on a Node, but a container of it is not created yet, for example because a Secret that it mounts does
// not exist. Its status does not have the reason; Events do, see Warnings.
func Creating(p *corev1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses), func(s corev1.ContainerStatus) bool {
		return s.State.Waiting != nil && starting(s.State.Waiting)
	})
}

// Warnings reads Events of type Warning about a Pod, at most 100.
func Warnings(ctx context.Context, c client.Reader, p *corev1.Pod) ([]corev1.Event, error) {
	list := &corev1.EventList{}
	err := c.List(ctx, list, client.InNamespace(p.Namespace), client.Limit(maxWarnings),
		client.MatchingFields{"type": corev1.EventTypeWarning, "involvedObject.name": p.Name})
	return list.Items, err
}

// NotCreated returns why containers of a Pod are not created, as the latest of these warnings has it; "" if they are, or that is unknown.
func NotCreated(p *corev1.Pod, warnings []corev1.Event) string {
	var last *corev1.Event
	for i := range warnings {
		e := &warnings[i]
		about := e.InvolvedObject.Kind == "Pod" && e.InvolvedObject.Namespace == p.Namespace && e.InvolvedObject.Name == p.Name
		if about && (last == nil || seen(e).After(seen(last))) {
			last = e
		}
	}
	if last == nil || !Creating(p) {
		return ""
	}
	message := strings.Join(strings.Fields(last.Message), " ")
	return Explanation(fmt.Sprintf("the containers of Pod %s are not created", p.Name), last.Reason, message)
}

// seen returns when an Event was seen last.
func seen(e *corev1.Event) time.Time {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}

// unavailable returns why no Pod of a Deployment is available, "" if that is unknown.
func unavailable(ctx context.Context, c client.Reader, key client.ObjectKey) string {
	if reason, _ := Trouble(ctx, c, key); reason != "" {
		return reason
	}
	d := &appsv1.Deployment{}
	if err := c.Get(ctx, key, d); err != nil {
		return ""
	}
	for _, p := range latest(ctx, c, d) {
		if !Creating(&p) {
			continue
		}
		if warnings, err := Warnings(ctx, c, &p); err == nil {
			return NotCreated(&p, warnings)
		}
	}
	return ""
}
