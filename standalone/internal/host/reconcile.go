package host

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Reconcile runs what the Deployment specifies, and updates the Deployment's status.
func (h *host) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	d := &appsv1.Deployment{}
	if err := h.client.Get(ctx, request.NamespacedName, d); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("read Deployment %s: %w", request, err)
		}
		h.replace(request.NamespacedName, nil)
		return ctrl.Result{}, nil
	}
	if !d.DeletionTimestamp.IsZero() {
		h.replace(request.NamespacedName, nil)
		return ctrl.Result{}, nil
	}
	wanted, refusal := planFor(d, h.Programs)
	if ptr.Deref(d.Spec.Replicas, 1) == 0 {
		wanted, refusal = nil, nil
	}
	seen := h.replace(request.NamespacedName, wanted)
	if refusal != nil {
		seen = observation{phase: phaseRefused, message: refusal.Error()}
	}
	return ctrl.Result{}, h.writeStatus(ctx, d, seen)
}

// replace makes an instance of the plan the only one of the Deployment, and returns its state. The new instance starts
// when the old one has stopped, because two instances of a component would write the same objects.
func (h *host) replace(key types.NamespacedName, wanted *plan) observation {
	h.mu.Lock()
	defer h.mu.Unlock()
	current := h.instances[key]
	if current != nil && wanted != nil && current.plan.hash == wanted.hash && !current.hasEnded() {
		return current.observe()
	}
	if current != nil {
		h.stop(current)
		if !current.hasEnded() {
			return current.observe()
		}
		delete(h.instances, key)
	}
	if wanted == nil || h.running.Err() != nil {
		return observation{phase: phaseNone}
	}
	started := h.start(wanted, func() { h.notify(key) })
	h.instances[key] = started
	return started.observe()
}

// notify requeues the Deployment.
func (h *host) notify(key types.NamespacedName) {
	changed := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	select {
	case h.changes <- event.GenericEvent{Object: changed}:
	case <-h.running.Done():
	}
}

// writeStatus writes a changed status, and an event if the user has to act.
func (h *host) writeStatus(ctx context.Context, d *appsv1.Deployment, seen observation) error {
	status := statusFor(d, seen, metav1.NewTime(h.Clock.Now()).Rfc3339Copy())
	if equality.Semantic.DeepEqual(status, d.Status) {
		return nil
	}
	before := d.DeepCopy()
	d.Status = status
	if err := h.client.Status().Patch(ctx, d, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the status of Deployment %s/%s: %w", d.Namespace, d.Name, err))
	}
	if message(before) == seen.message {
		return nil
	}
	switch seen.phase {
	case phaseRefused:
		h.recorder.Eventf(d, nil, corev1.EventTypeWarning, "ImageNotHosted", "Start", "%s", seen.message)
	case phaseFailed:
		h.recorder.Eventf(d, nil, corev1.EventTypeWarning, "ComponentFailed", "Start", "%s", seen.message)
	}
	return nil
}

// message is the reason in the Deployment's status why it is not available.
func message(d *appsv1.Deployment) string {
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentAvailable {
			return condition.Message
		}
	}
	return ""
}
