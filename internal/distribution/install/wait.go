package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// WaitAvailable waits until a Deployment is available, or returns why it is not when the context ends or after timeout.
// report, which may be nil, is called once per reason to wait.
func WaitAvailable(ctx context.Context, c client.WithWatch, key client.ObjectKey, timeout time.Duration, report func(reason string)) error {
	deadline, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	reason := ""
	for {
		done, err := watchAvailable(deadline, c, key, func(r string) {
			if r != reason && report != nil {
				report(r)
			}
			reason = r
		})
		if done || (err != nil && deadline.Err() == nil && !retriable(err)) {
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
			return fmt.Errorf("Deployment %s is not available after %s: %s: see `kubectl -n %s describe deployment %s`",
				key, timeout, reason, key.Namespace, key.Name)
		case <-time.After(rewatchDelay):
		}
	}
}

// watchAvailable watches the Deployment until it is available (done) or the watch ends.
func watchAvailable(ctx context.Context, c client.WithWatch, key client.ObjectKey, report func(string)) (done bool, err error) {
	// The watch starts before the read, so that no change is missed between the two.
	watcher, err := c.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(key.Namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", key.Name)})
	if err != nil {
		return false, err
	}
	defer watcher.Stop()
	d := &appsv1.Deployment{}
	if err := c.Get(ctx, key, d); err != nil {
		return false, err
	}
	for {
		available, reason := availability(d)
		if available {
			return true, nil
		}
		report(reason)
		select {
		case <-ctx.Done():
			return false, nil
		case event, ok := <-watcher.ResultChan():
			if !ok {
				return false, nil
			}
			if changed, ok := event.Object.(*appsv1.Deployment); ok && changed.Name == key.Name {
				d = changed
			}
		}
	}
}

// availability reports whether the Deployment is rolled out in its latest version, and if not, why. The condition Available
// alone is not enough: during a rollout, or when it is stuck, it describes the Pods of the old version.
func availability(d *appsv1.Deployment) (bool, string) {
	var reasons []string
	available := false
	for _, condition := range d.Status.Conditions {
		switch {
		case condition.Type == appsv1.DeploymentAvailable && condition.Status == corev1.ConditionTrue:
			available = true
		case condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue,
			condition.Type != appsv1.DeploymentReplicaFailure && condition.Status != corev1.ConditionTrue:
			if !slices.Contains(reasons, condition.Message) {
				reasons = append(reasons, condition.Message)
			}
		}
	}
	waiting := rollout(d)
	switch {
	case available && waiting == "":
		return true, ""
	case len(reasons) > 0:
		return false, strings.Join(reasons, "; ")
	case waiting != "":
		return false, waiting
	}
	return false, "it has no Available condition yet"
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
