package store

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// defaultGracePeriod is the grace period of a Pod if neither the Pod nor its deletion sets one.
const defaultGracePeriod = 30 * time.Second

// delete removes an object or sets its deletion timestamp. The store's lock is held.
func (s *state) delete(current *Object, o DeleteOptions) (*Object, bool, error) {
	u := current.Unstructured()
	switch {
	case o.Propagation == metav1.DeletePropagationOrphan:
		if err := s.orphan(current); err != nil {
			return nil, false, err
		}
	case o.Propagation == metav1.DeletePropagationForeground && len(s.dependents[current.UID]) > 0:
		if !slices.Contains(u.GetFinalizers(), metav1.FinalizerDeleteDependents) {
			u.SetFinalizers(append(u.GetFinalizers(), metav1.FinalizerDeleteDependents))
		}
	}
	isNamespace := current.Key.Resource == Namespaces()
	if len(u.GetFinalizers()) == 0 && !isNamespace && !s.staysTerminating(current, u, o) {
		return current, true, s.remove(current)
	}
	marked, err := s.mark(current, u, o)
	if err != nil {
		return nil, false, err
	}
	if isNamespace {
		err = s.empty(marked)
	} else if slices.Contains(u.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		err = s.deleteDependents(marked)
	}
	now := s.lookup(marked.Key)
	if now == nil {
		return marked, true, err
	}
	return now, false, err
}

// mark sets an object's deletion timestamp. A second deletion can only shorten a Pod's grace period.
func (s *state) mark(current *Object, u *unstructured.Unstructured, o DeleteOptions) (*Object, error) {
	if !current.terminating {
		now, grace := metav1.NewTime(s.clock.Now()), int64(0)
		if current.Key.Resource == Pods() {
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
	marked, err := encode(current.Key, u, s.revision+1)
	if err != nil {
		return nil, err
	}
	return marked, s.put(Event{Type: watch.Modified, Object: marked, Previous: current})
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

// remove removes an object from the store and handles its dependents and owners. The store's lock is held.
func (s *state) remove(current *Object) error {
	u := current.Unstructured()
	gone, err := encode(current.Key, u, s.revision+1)
	if err != nil {
		return err
	}
	if err := s.put(Event{Type: watch.Deleted, Object: gone, Previous: current}); err != nil {
		return err
	}
	if err := s.collect(gone); err != nil {
		return err
	}
	if current.Key.Resource == Nodes() {
		if err := s.removePodsOf(current.Key.Name); err != nil {
			return err
		}
	}
	for _, owner := range gone.owners {
		if err := s.finishDeletion(s.byUID(owner)); err != nil {
			return err
		}
	}
	return s.finishDeletion(s.lookup(Key{Resource: Namespaces(), Name: current.Key.Namespace}))
}

// removePodsOf removes the Pods of a deleted Node, like the Pod garbage collector.
func (s *state) removePodsOf(node string) error {
	for _, pod := range s.podsOf(node) {
		if s.lookup(pod.Key) != pod || len(pod.Unstructured().GetFinalizers()) > 0 {
			continue
		}
		if err := s.remove(pod); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) onDeadMachine(pod *unstructured.Unstructured) bool {
	node := nodeName(pod)
	return node != "" && s.power.Dead(node)
}

// staysTerminating reports whether a Pod on a dead machine stays terminating.
func (s *state) staysTerminating(current *Object, pod *unstructured.Unstructured, o DeleteOptions) bool {
	return current.Key.Resource == Pods() && gracePeriod(pod, o) > 0 && s.onDeadMachine(pod)
}

// markIfDead applies markUnreachable to an object that is created on a dead machine. A process that has just started
// restores objects before or after it learns about the faults. The store's lock is held.
func (s *state) markIfDead(r Resource, u *unstructured.Unstructured) {
	if r == Nodes() && s.power.Dead(u.GetName()) || r == Pods() && s.onDeadMachine(u) {
		s.power.MarkUnreachable(u)
	}
}

// collect deletes the dependents of a removed object. Those with other owners only lose this owner reference.
func (s *state) collect(owner *Object) error {
	for _, key := range s.dependentsOf(owner.UID) {
		dependent := s.lookup(key)
		if dependent == nil {
			continue
		}
		if slices.ContainsFunc(dependent.owners, func(uid types.UID) bool { return uid != owner.UID && s.byUID(uid) != nil }) {
			if err := s.disown(dependent, owner.UID); err != nil {
				return err
			}
			continue
		}
		if _, _, err := s.delete(dependent, DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// deleteDependents deletes the dependents of an owner in foreground deletion, then the owner if none are left.
func (s *state) deleteDependents(owner *Object) error {
	for _, key := range s.dependentsOf(owner.UID) {
		if dependent := s.lookup(key); dependent != nil && !dependent.terminating {
			if _, _, err := s.delete(dependent, DeleteOptions{Propagation: metav1.DeletePropagationForeground}); err != nil {
				return err
			}
		}
	}
	return s.finishDeletion(s.lookup(owner.Key))
}

// orphan removes an owner's references from its dependents.
func (s *state) orphan(owner *Object) error {
	for _, key := range s.dependentsOf(owner.UID) {
		if dependent := s.lookup(key); dependent != nil {
			if err := s.disown(dependent, owner.UID); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *state) disown(dependent *Object, owner types.UID) error {
	u := dependent.Unstructured()
	u.SetOwnerReferences(slices.DeleteFunc(u.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner }))
	updated, err := encode(dependent.Key, u, s.revision+1)
	if err != nil {
		return err
	}
	return s.put(Event{Type: watch.Modified, Object: updated, Previous: dependent})
}

// empty deletes everything in a terminating namespace, then the namespace if nothing is left.
func (s *state) empty(namespace *Object) error {
	for _, key := range s.keysIn(namespace.Key.Name) {
		if o := s.lookup(key); o != nil && !o.terminating {
			if _, _, err := s.delete(o, DeleteOptions{}); err != nil {
				return err
			}
		}
	}
	return s.finishDeletion(s.lookup(namespace.Key))
}

// finishOwnerDeletion finishes the deletion of the owners of a dependent that may no longer block them.
func (s *state) finishOwnerDeletion(dependent *Object) error {
	for _, uid := range dependent.owners {
		if err := s.finishDeletion(s.byUID(uid)); err != nil {
			return err
		}
	}
	return nil
}

// finishDeletion removes a terminating object if what blocked it is gone: the content of a namespace, the dependents of
// an owner.
func (s *state) finishDeletion(o *Object) error {
	if o == nil || !o.terminating {
		return nil
	}
	u := o.Unstructured()
	finalizers := u.GetFinalizers()
	foreground := slices.Index(finalizers, metav1.FinalizerDeleteDependents)
	if foreground >= 0 && !s.blocked(o.UID) {
		finalizers = slices.Delete(finalizers, foreground, foreground+1)
		u.SetFinalizers(finalizers)
		if len(finalizers) > 0 {
			updated, err := encode(o.Key, u, s.revision+1)
			if err != nil {
				return err
			}
			return s.put(Event{Type: watch.Modified, Object: updated, Previous: o})
		}
	}
	if len(finalizers) > 0 || s.isBlocked(o, u) {
		return nil
	}
	if o.Key.Resource != Namespaces() && foreground < 0 {
		return nil
	}
	return s.remove(o)
}

// isBlocked reports whether anything but finalizers blocks the removal of a terminating object.
func (s *state) isBlocked(o *Object, u *unstructured.Unstructured) bool {
	switch o.Key.Resource {
	case Namespaces():
		return len(s.keysIn(o.Key.Name)) > 0
	case Pods():
		grace := u.GetDeletionGracePeriodSeconds()
		return o.terminating && grace != nil && *grace > 0 && s.onDeadMachine(u)
	}
	return false
}

// blocked reports whether a dependent blocks the foreground deletion of an owner.
func (s *state) blocked(owner types.UID) bool {
	for key := range s.dependents[owner] {
		for _, reference := range s.lookup(key).Unstructured().GetOwnerReferences() {
			if reference.UID == owner && reference.BlockOwnerDeletion != nil && *reference.BlockOwnerDeletion {
				return true
			}
		}
	}
	return false
}
