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

// Reconcile makes what runs be what the Deployment asks for, and the Deployment's status say how it goes.
func (h *host) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	d := &appsv1.Deployment{}
	if err := h.client.Get(ctx, request.NamespacedName, d); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("reading Deployment %s: %w", request, err)
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

// replace makes an instance of the plan the only one that runs for the Deployment, and returns what is seen of it. An
// old instance is asked to end; the new one starts when that has happened, because two of one component in a process
// would write the same objects.
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

// notify has the Deployment looked at again.
func (h *host) notify(key types.NamespacedName) {
	changed := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	select {
	case h.changes <- event.GenericEvent{Object: changed}:
	case <-h.running.Done():
	}
}

// writeStatus writes a status that changed, and tells the user in an event what they have to act on.
func (h *host) writeStatus(ctx context.Context, d *appsv1.Deployment, seen observation) error {
	status := statusFor(d, seen, metav1.NewTime(h.Clock.Now()).Rfc3339Copy())
	if equality.Semantic.DeepEqual(status, d.Status) {
		return nil
	}
	before := d.DeepCopy()
	d.Status = status
	if err := h.client.Status().Patch(ctx, d, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the status of Deployment %s/%s: %w", d.Namespace, d.Name, err))
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

// message is what the Deployment's status says about why it is not available.
func message(d *appsv1.Deployment) string {
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentAvailable {
			return condition.Message
		}
	}
	return ""
}
