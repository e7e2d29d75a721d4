package cloud

import (
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// This file implements the garbage collector and the namespace controller of a workload cluster. Both run synchronously
// within the write that triggers them, with the group's lock held. Nothing runs in the background.

// checkNamespace rejects a new object whose namespace does not exist or is terminating.
func (g *Group) checkNamespace(r Resource, namespace, objectName string) error {
	if namespace == "" {
		return nil
	}
	at := g.lookup(Key{Resource: Namespaces(), Name: namespace})
	if at == nil {
		return apierrors.NewNotFound(Namespaces(), namespace)
	}
	if at.terminating {
		err := apierrors.NewForbidden(r, objectName,
			fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: "NamespaceTerminating", Field: "metadata.namespace"}}
		return err
	}
	return nil
}

// collect deletes the dependents of a removed object. Those with other owners only lose this owner reference.
func (g *Group) collect(owner *Object) error {
	for _, key := range g.dependentsOf(owner.UID) {
		dependent := g.lookup(key)
		if dependent == nil {
			continue
		}
		if slices.ContainsFunc(dependent.owners, func(uid types.UID) bool { return uid != owner.UID && g.byUID(uid) != nil }) {
			if err := g.disown(dependent, owner.UID); err != nil {
				return err
			}
			continue
		}
		if _, _, err := g.delete(dependent, DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// deleteDependents deletes the dependents of an owner in foreground deletion, then the owner if none are left.
func (g *Group) deleteDependents(owner *Object) error {
	for _, key := range g.dependentsOf(owner.UID) {
		if dependent := g.lookup(key); dependent != nil && !dependent.terminating {
			if _, _, err := g.delete(dependent, DeleteOptions{Propagation: metav1.DeletePropagationForeground}); err != nil {
				return err
			}
		}
	}
	return g.finishDeletion(g.lookup(owner.Key))
}

// orphan removes an owner's references from its dependents.
func (g *Group) orphan(owner *Object) error {
	for _, key := range g.dependentsOf(owner.UID) {
		if dependent := g.lookup(key); dependent != nil {
			if err := g.disown(dependent, owner.UID); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *Group) disown(dependent *Object, owner types.UID) error {
	u := dependent.Unstructured()
	u.SetOwnerReferences(slices.DeleteFunc(u.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner }))
	updated, err := encode(dependent.Key, u, g.revision+1)
	if err != nil {
		return err
	}
	return g.put(Event{Type: watch.Modified, Object: updated, Previous: dependent})
}

// empty deletes everything in a terminating namespace, then the namespace if nothing is left.
func (g *Group) empty(namespace *Object) error {
	for _, key := range g.keysIn(namespace.Key.Name) {
		if o := g.lookup(key); o != nil && !o.terminating {
			if _, _, err := g.delete(o, DeleteOptions{}); err != nil {
				return err
			}
		}
	}
	return g.finishDeletion(g.lookup(namespace.Key))
}

// finishOwnerDeletion finishes the deletion of the owners of a dependent that may no longer block them.
func (g *Group) finishOwnerDeletion(dependent *Object) error {
	for _, uid := range dependent.owners {
		if err := g.finishDeletion(g.byUID(uid)); err != nil {
			return err
		}
	}
	return nil
}

// finishDeletion removes a terminating object if what blocked it is gone: the content of a namespace, the dependents of
// an owner.
func (g *Group) finishDeletion(o *Object) error {
	if o == nil || !o.terminating {
		return nil
	}
	u := o.Unstructured()
	finalizers := u.GetFinalizers()
	foreground := slices.Index(finalizers, metav1.FinalizerDeleteDependents)
	if foreground >= 0 && !g.blocked(o.UID) {
		finalizers = slices.Delete(finalizers, foreground, foreground+1)
		u.SetFinalizers(finalizers)
		if len(finalizers) > 0 {
			updated, err := encode(o.Key, u, g.revision+1)
			if err != nil {
				return err
			}
			return g.put(Event{Type: watch.Modified, Object: updated, Previous: o})
		}
	}
	if len(finalizers) > 0 || g.isBlocked(o, u) {
		return nil
	}
	if o.Key.Resource != Namespaces() && foreground < 0 {
		return nil
	}
	return g.remove(o)
}

// isBlocked reports whether anything but finalizers blocks the removal of a terminating object.
func (g *Group) isBlocked(o *Object, u *unstructured.Unstructured) bool {
	switch o.Key.Resource {
	case Namespaces():
		return len(g.keysIn(o.Key.Name)) > 0
	case pods:
		grace := u.GetDeletionGracePeriodSeconds()
		return o.terminating && grace != nil && *grace > 0 && g.onDeadMachine(u)
	}
	return false
}

// blocked reports whether a dependent blocks the foreground deletion of an owner.
func (g *Group) blocked(owner types.UID) bool {
	for key := range g.dependents[owner] {
		for _, reference := range g.lookup(key).Unstructured().GetOwnerReferences() {
			if reference.UID == owner && reference.BlockOwnerDeletion != nil && *reference.BlockOwnerDeletion {
				return true
			}
		}
	}
	return false
}

// dependentsOf returns the keys of an object's dependents, sorted so that the order of events is deterministic.
func (g *Group) dependentsOf(owner types.UID) []Key {
	return slices.SortedFunc(maps.Keys(g.dependents[owner]), compareKeys)
}

func (g *Group) keysIn(namespace string) []Key {
	if namespace == "" {
		return nil
	}
	var keys []Key
	for r, stored := range g.objects {
		for at := range stored {
			if at.namespace == namespace {
				keys = append(keys, Key{Resource: r, Namespace: at.namespace, Name: at.name})
			}
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// byUID finds an owner by scanning all objects: it is only called for objects with owners, and groups are small.
func (g *Group) byUID(uid types.UID) *Object {
	for _, stored := range g.objects {
		for _, o := range stored {
			if o.UID == uid {
				return o
			}
		}
	}
	return nil
}

func compareKeys(a, b Key) int {
	switch {
	case a.String() < b.String():
		return -1
	case a == b:
		return 0
	}
	return 1
}
