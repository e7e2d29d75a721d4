package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/packages/retry"
)

const (
	establishedInterval = 50 * time.Millisecond
	establishedTimeout  = time.Minute
	// rewatchDelay avoids a hot loop if a server ends watches immediately.
	rewatchDelay = time.Second
)

// WaitEstablished waits at most a minute until the API server serves the kind of a CRD.
func WaitEstablished(ctx context.Context, c client.Reader, crdName string) error {
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	err := wait.PollUntilContextTimeout(ctx, establishedInterval, establishedTimeout, true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKey{Name: crdName}, crd); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
		for _, item := range conditions {
			if condition, ok := item.(map[string]any); ok && condition["type"] == "Established" && condition["status"] == "True" {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("CustomResourceDefinition %s is not established: %w", crdName, err)
	}
	return nil
}

// WaitAvailable waits until a Deployment is available, or returns why it is not, and why its Pods do not run, when the context ends, after
// timeout, or when the Deployment has given up, which is what `kubectl rollout status` waits for, too. report, which may be nil, is called
// once per reason to wait.
func WaitAvailable(ctx context.Context, c client.WithWatch, key client.ObjectKey, timeout time.Duration, report func(reason string)) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	w := &Wait{Client: c, Timeout: timeout, Report: report, What: fmt.Sprintf("Deployment %s is not available", key)}
	failure := ""
	err := w.Until(ctx, d, &appsv1.DeploymentList{}, func(o client.Object) (bool, string) {
		changed, ok := o.(*appsv1.Deployment)
		if !ok {
			return false, ""
		}
		available, reason := availability(changed)
		failure = Stuck(changed)
		return available || failure != "", reason
	})
	if err == nil && failure != "" {
		return fmt.Errorf("Deployment %s does not start: %s: see `kubectl -n %s describe pods`", key, failure, key.Namespace)
	}
	if err != nil && ctx.Err() == nil {
		if reason := unavailable(ctx, c, key); reason != "" && !strings.Contains(err.Error(), reason) {
			return fmt.Errorf("%w: %s", err, reason)
		}
	}
	return err
}

// Stuck returns why a Deployment has given up its current rollout, "" if it has not.
func Stuck(d *appsv1.Deployment) string {
	if available, _ := availability(d); available || d.Status.ObservedGeneration < d.Generation {
		return ""
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded" {
			return cmp.Or(c.Message, c.Reason)
		}
	}
	return ""
}

// Refused waits until a Deployment is noticed, for at most timeout, and returns why it has been given up at once; "" if it was not.
func Refused(ctx context.Context, c client.WithWatch, key client.ObjectKey, timeout time.Duration) string {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	w, reason := &Wait{Client: c, Timeout: timeout}, ""
	// The error is that nothing has noticed it in time: then nothing has refused it either.
	_ = w.Until(ctx, d, &appsv1.DeploymentList{}, func(o client.Object) (bool, string) {
		changed, ok := o.(*appsv1.Deployment)
		if !ok || changed.Status.ObservedGeneration < changed.Generation {
			return false, ""
		}
		reason = Stuck(changed)
		return true, ""
	})
	return reason
}

// Wait waits for one object by watching it.
type Wait struct {
	Client  client.WithWatch
	Timeout time.Duration
	// Report, which may be nil, is called once per reason to wait.
	Report func(reason string)
	// What begins the error, such as "Deployment a/b is not available".
	What string

	// gone ends the wait when the object does not exist.
	gone bool
}

// UntilGone waits until an object does not exist; see Until. reason returns why it still does.
func (w *Wait) UntilGone(ctx context.Context, o client.Object, list client.ObjectList, reason func(client.Object) string) error {
	deletion := *w
	deletion.gone = true
	return deletion.Until(ctx, o, list, func(o client.Object) (bool, string) { return false, reason(o) })
}

// Until waits until ready is true for an object, or returns the last reason when the context ends or after the timeout. o is of
// its kind and has its key; list is of the kind of its list.
func (w *Wait) Until(ctx context.Context, o client.Object, list client.ObjectList, ready func(client.Object) (bool, string)) error {
	deadline, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	reason := ""
	for {
		done, err := w.watch(deadline, o, list, func(o client.Object) bool {
			done, r := ready(o)
			if !done && r != reason && w.Report != nil {
				w.Report(r)
			}
			reason = r
			return done
		})
		if done || (err != nil && deadline.Err() == nil && !retry.Passes(err)) {
			return err
		}
		if err != nil && reason == "" {
			reason = err.Error()
		}
		select {
		case <-deadline.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return errors.New(Explanation(fmt.Sprintf("%s after %s", w.What, w.Timeout), reason,
				fmt.Sprintf("see `kubectl -n %s describe %s %s`", o.GetNamespace(), w.kind(o), o.GetName())))
		case <-time.After(rewatchDelay):
		}
	}
}

// Explanation joins those parts of an explanation that are not empty, such as the reason and the message of a condition: "a: b".
func Explanation(parts ...string) string {
	parts = slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return strings.TrimSpace(part) == "" })
	return strings.Join(parts, ": ")
}

// kind returns the kind of an object as kubectl takes it.
func (w *Wait) kind(o client.Object) string {
	kind, err := w.Client.GroupVersionKindFor(o)
	if err != nil {
		return "" // Cannot happen: it was read.
	}
	return strings.ToLower(kind.Kind)
}

// watch watches the object until it is ready (done) or the watch ends.
func (w *Wait) watch(ctx context.Context, o client.Object, list client.ObjectList, ready func(client.Object) bool) (done bool, err error) {
	// The watch starts before the read, so that no change is missed between the two.
	watcher, err := w.Client.Watch(ctx, list, client.InNamespace(o.GetNamespace()),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", o.GetName())})
	if err != nil {
		return false, err
	}
	defer watcher.Stop()
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(o), o); w.gone && apierrors.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	for current := o; !ready(current); {
		select {
		case <-ctx.Done():
			return false, nil
		case event, ok := <-watcher.ResultChan():
			if !ok {
				return false, nil
			}
			changed, ok := event.Object.(client.Object)
			if !ok || changed.GetName() != o.GetName() {
				continue
			}
			if w.gone && event.Type == watch.Deleted {
				return true, nil
			}
			current = changed
		}
	}
	return true, nil
}

// availability reports whether the Deployment is rolled out in its latest version, and if not, why. The condition Available
// alone is not enough: during a rollout, or when it is stuck, it describes the Pods of the old version.
func availability(d *appsv1.Deployment) (bool, string) {
	var reasons []string
	available, missing := false, "it has no Available condition yet"
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentAvailable {
			available, missing = condition.Status == corev1.ConditionTrue, fmt.Sprintf("its condition Available is %s", condition.Status)
		}
		switch {
		case condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue,
			condition.Type != appsv1.DeploymentReplicaFailure && condition.Status != corev1.ConditionTrue:
			if text := cmp.Or(condition.Message, condition.Reason); text != "" && !slices.Contains(reasons, text) {
				reasons = append(reasons, text)
			}
		}
	}
	waiting := rollout(d)
	switch {
	case available && waiting == "":
		return true, ""
	case d.Status.ObservedGeneration < d.Generation:
		return false, waiting // The conditions are of the previous spec.
	case len(reasons) > 0:
		return false, strings.Join(reasons, "; ")
	case waiting != "":
		return false, waiting
	}
	return false, missing
}

// rollout reports what the rollout of the latest version waits for, as `kubectl rollout status` does; "" when it is complete.
func rollout(d *appsv1.Deployment) string {
	switch s := d.Status; {
	case s.ObservedGeneration < d.Generation:
		return "the latest spec has not been observed yet"
	case s.UpdatedReplicas < replicas(d):
		return fmt.Sprintf("%d of %d replicas updated", s.UpdatedReplicas, replicas(d))
	case s.Replicas > s.UpdatedReplicas:
		return fmt.Sprintf("%d old replicas are pending termination", s.Replicas-s.UpdatedReplicas)
	case s.AvailableReplicas < s.UpdatedReplicas:
		return fmt.Sprintf("%d of %d replicas available", s.AvailableReplicas, s.UpdatedReplicas)
	}
	return ""
}

func replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}
