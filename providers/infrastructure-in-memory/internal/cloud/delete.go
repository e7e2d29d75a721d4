package cloud

import (
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// defaultGracePeriod is the grace period of a Pod if neither the Pod nor its deletion sets one.
const defaultGracePeriod = 30 * time.Second

// DeleteOptions modify a deletion.
type DeleteOptions struct {
	// UID and ResourceVersion are preconditions, if set.
	UID, ResourceVersion string
	// Propagation is the propagation policy. Default: background.
	Propagation metav1.DeletionPropagation
	// GracePeriod is for Pods on a dead machine: they stay terminating until the machine is back or they are deleted with
	// a grace period of zero. Other objects are deleted immediately. Nil means the Pod's own period.
	GracePeriod *time.Duration
	// DryRun does everything but delete.
	DryRun bool
}

// Delete deletes an object and, depending on the propagation policy, its dependents. An object with finalizers, an owner
// in foreground deletion with dependents, a namespace with such content, and a Pod on a dead machine stay with a deletion
// timestamp until what blocks them is gone. Delete returns the object's last version and whether it is gone. Errors:
// NotFound; Conflict if a precondition fails; Forbidden for default namespaces.
func (g *Group) Delete(key Key, o DeleteOptions) (*Object, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, false, ErrGroupDeleted
	}
	current := g.lookup(key)
	if current == nil {
		return nil, false, apierrors.NewNotFound(key.Resource, key.Name)
	}
	if err := checkPreconditions(current, o.UID, o.ResourceVersion); err != nil {
		return nil, false, err
	}
	if key.Resource == Namespaces() && slices.Contains([]string{"default", "kube-system", "kube-public"}, key.Name) {
		return nil, false, apierrors.NewForbidden(key.Resource, key.Name, errors.New("this namespace may not be deleted"))
	}
	if o.DryRun {
		return current, true, nil
	}
	return g.delete(current, o)
}

// delete removes an object or sets its deletion timestamp. The group's lock is held.
func (g *Group) delete(current *Object, o DeleteOptions) (*Object, bool, error) {
	u := current.Unstructured()
	switch {
	case o.Propagation == metav1.DeletePropagationOrphan:
		if err := g.orphan(current); err != nil {
			return nil, false, err
		}
	case o.Propagation == metav1.DeletePropagationForeground && len(g.dependents[current.UID]) > 0:
		if !slices.Contains(u.GetFinalizers(), metav1.FinalizerDeleteDependents) {
			u.SetFinalizers(append(u.GetFinalizers(), metav1.FinalizerDeleteDependents))
		}
	}
	isNamespace := current.Key.Resource == Namespaces()
	if len(u.GetFinalizers()) == 0 && !isNamespace && !g.staysTerminating(current, u, o) {
		return current, true, g.remove(current)
	}
	marked, err := g.mark(current, u, o)
	if err != nil {
		return nil, false, err
	}
	if isNamespace {
		err = g.empty(marked)
	} else if slices.Contains(u.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		err = g.deleteDependents(marked)
	}
	now := g.lookup(marked.Key)
	if now == nil {
		return marked, true, err
	}
	return now, false, err
}

// mark sets an object's deletion timestamp. A second deletion can only shorten a Pod's grace period.
func (g *Group) mark(current *Object, u *unstructured.Unstructured, o DeleteOptions) (*Object, error) {
	if !current.terminating {
		now, grace := metav1.NewTime(g.clock.Now()), int64(0)
		if current.Key.Resource == pods {
			period := gracePeriod(u, o)
			now, grace = metav1.NewTime(now.Add(period)), int64(period/time.Second)
		}
		u.SetDeletionTimestamp(&now)
		u.SetDeletionGracePeriodSeconds(&grace)
		if u.GetGeneration() > 0 {
			u.SetGeneration(u.GetGeneration() + 1)
		}
		if current.Key.Resource == Namespaces() {
			_ = unstructured.SetNestedField(u.Object, "Terminating", "status", "phase")
		}
	}
	if unchanged(current, u) {
		return current, nil
	}
	marked, err := encode(current.Key, u, g.revision+1)
	if err != nil {
		return nil, err
	}
	return marked, g.put(Event{Type: watch.Modified, Object: marked, Previous: current})
}

func gracePeriod(u *unstructured.Unstructured, o DeleteOptions) time.Duration {
	if o.GracePeriod != nil {
		return *o.GracePeriod
	}
	if seconds, found, err := unstructured.NestedInt64(u.Object, "spec", "terminationGracePeriodSeconds"); found && err == nil {
		return time.Duration(seconds) * time.Second
	}
	return defaultGracePeriod
}

// remove removes an object from the store and handles its dependents and owners. The group's lock is held.
func (g *Group) remove(current *Object) error {
	u := current.Unstructured()
	gone, err := encode(current.Key, u, g.revision+1)
	if err != nil {
		return err
	}
	if err := g.put(Event{Type: watch.Deleted, Object: gone, Previous: current}); err != nil {
		return err
	}
	if err := g.collect(gone); err != nil {
		return err
	}
	if current.Key.Resource == nodes {
		if err := g.removePodsOf(current.Key.Name); err != nil {
			return err
		}
	}
	for _, owner := range gone.owners {
		if err := g.finishDeletion(g.byUID(owner)); err != nil {
			return err
		}
	}
	return g.finishDeletion(g.lookup(Key{Resource: Namespaces(), Name: current.Key.Namespace}))
}
