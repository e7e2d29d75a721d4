package host

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
		return ctrl.Result{}, h.abandoned(ctx, request.NamespacedName)
	}
	switch {
	case !d.DeletionTimestamp.IsZero():
		return ctrl.Result{}, h.abandoned(ctx, request.NamespacedName)
	case ptr.Deref(d.Spec.Replicas, 1) == 0:
		h.stopAll(request.NamespacedName)
		return h.report(ctx, d, observation{state: state{phase: phaseNone}})
	}
	wanted, refusal := planFor(d, h.Programs)
	needed, err := h.needed(ctx, d)
	if err != nil {
		return ctrl.Result{}, err
	}
	seen := h.rollOut(d, wanted, needed)
	if refusal != nil {
		seen.state = state{phase: phaseRefused, message: refusal.Error()}
	}
	return h.report(ctx, d, seen)
}

// report writes what is observed of a Deployment: first its ReplicaSet, as a Deployment that is ready has one that is.
func (h *host) report(ctx context.Context, d *appsv1.Deployment, seen observation) (ctrl.Result, error) {
	result, err := ctrl.Result{}, h.publish(ctx, d, seen)
	if err == nil {
		result, err = h.writeStatus(ctx, d, seen)
	}
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: cacheDelay}, nil // The cache does not have the newest version yet.
	}
	return result, err
}

// cacheDelay is how long to wait until the cache has what was just written.
const cacheDelay = 50 * time.Millisecond

// stopAll stops the instances of a Deployment.
func (h *host) stopAll(key types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, i := range h.alive(key) {
		h.stop(i)
	}
}

// rollOut takes the next step of a rollout, and returns the state of the component. wanted is nil if this process cannot run
// the template. needed reports whether an instance must not stop yet.
func (h *host) rollOut(d *appsv1.Deployment, wanted *plan, needed func(*instance) bool) observation {
	key, hash := client.ObjectKeyFromObject(d), planHash(d)
	h.mu.Lock()
	defer h.mu.Unlock()
	alive := h.alive(key)
	members := make([]member, 0, len(alive))
	for _, i := range alive {
		m := i.member()
		m.needed = needed(i)
		members = append(members, m)
	}
	todo := planRollout(members, hash, wanted != nil, surges(d))
	for _, at := range todo.stop {
		h.stop(alive[at])
	}
	if todo.start && h.running.Err() == nil {
		alive = append(alive, h.start(wanted, alive, func() { h.notify(key) }))
		h.instances[key] = alive
	}
	return observe(alive, hash)
}

// notify requeues the Deployment.
func (h *host) notify(key types.NamespacedName) {
	changed := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	select {
	case h.changes <- event.GenericEvent{Object: changed}:
	case <-h.running.Done():
	}
}

// writeStatus writes a changed status, and an event if the user has to act. It returns when the deadline for progress ends.
func (h *host) writeStatus(ctx context.Context, d *appsv1.Deployment, seen observation) (ctrl.Result, error) {
	now := metav1.NewTime(h.Clock.Now()).Rfc3339Copy()
	status := statusFor(d, seen, now)
	result := ctrl.Result{RequeueAfter: untilDeadline(d.Spec, status, now.Time)}
	if equality.Semantic.DeepEqual(status, d.Status) {
		return result, nil
	}
	before := d.DeepCopy()
	d.Status = status
	// Not a patch: one that is made from a status that is no longer the stored one would keep fields of that.
	if err := h.client.Status().Update(ctx, d); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("write the status of Deployment %s/%s: %w", d.Namespace, d.Name, err))
	}
	if mentions(before, seen.message) {
		return result, nil
	}
	switch seen.phase {
	case phaseRefused:
		h.recorder.Eventf(d, nil, corev1.EventTypeWarning, "ImageNotHosted", "Start", "%s", seen.message)
	case phaseFailed:
		h.recorder.Eventf(d, nil, corev1.EventTypeWarning, "ComponentFailed", "Start", "%s", seen.message)
	}
	return result, nil
}

// mentions reports whether a condition of the Deployment has the message.
func mentions(d *appsv1.Deployment, message string) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool { return strings.HasSuffix(c.Message, message) })
}
