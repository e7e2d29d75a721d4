package watch

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Created selects creations, which include all existing objects when the controller starts.
func Created() predicate.Predicate {
	p := nothing()
	p.CreateFunc = func(event.CreateEvent) bool { return true }
	return p
}

// Deleted selects deletions.
func Deleted() predicate.Predicate {
	p := nothing()
	p.DeleteFunc = func(event.DeleteEvent) bool { return true }
	return p
}

// Updated selects updates for which matters returns true. Combine it with Created or Deleted by predicate.Or.
func Updated[T client.Object](matters func(before, after T) bool) predicate.Predicate {
	p := nothing()
	p.UpdateFunc = func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(T)
		if !ok {
			return false
		}
		after, ok := e.ObjectNew.(T)
		return ok && matters(before, after)
	}
	return p
}

// Resynced selects the periodic events of objects that did not change.
func Resynced() predicate.Predicate {
	return Updated(func(before, after client.Object) bool {
		return before.GetResourceVersion() == after.GetResourceVersion()
	})
}

func nothing() predicate.Funcs {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
