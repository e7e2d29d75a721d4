package store

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

// Namespaces is the resource of namespaces, on which the store's other objects depend.
func Namespaces() Resource { return Resource{Resource: "namespaces"} }

// Nodes is the resource of Nodes.
func Nodes() Resource { return Resource{Resource: "nodes"} }

// Pods is the resource of Pods.
func Pods() Resource { return Resource{Resource: "pods"} }

type name struct{ namespace, name string }

// table is the current objects of a store.
type table struct {
	revision   uint64
	objects    map[Resource]map[name]*Object
	dependents map[types.UID]map[Key]struct{} // by UID of an owner
	stored     int64                          // the weight of all objects
	limit      int64
}

func newTable(revision uint64, limit int64) table {
	return table{
		revision: revision, limit: limit, objects: map[Resource]map[name]*Object{}, dependents: map[types.UID]map[Key]struct{}{},
	}
}

// lookup returns the current version of an object, or nil. The store's lock is held.
func (t *table) lookup(key Key) *Object {
	return t.objects[key.Resource][name{key.Namespace, key.Name}]
}

// index applies an event to the maps of the current state.
func (t *table) index(e Event) {
	o, at := e.Object, name{e.Object.Key.Namespace, e.Object.Key.Name}
	t.revision = o.Revision
	if e.Previous != nil {
		t.stored -= e.Previous.weight()
		for _, owner := range e.Previous.owners {
			delete(t.dependents[owner], o.Key)
			if len(t.dependents[owner]) == 0 {
				delete(t.dependents, owner)
			}
		}
	}
	if e.Type == watch.Deleted {
		delete(t.objects[o.Key.Resource], at)
		return
	}
	t.stored += o.weight()
	if t.objects[o.Key.Resource] == nil {
		t.objects[o.Key.Resource] = map[name]*Object{}
	}
	t.objects[o.Key.Resource][at] = o
	for _, owner := range o.owners {
		if t.dependents[owner] == nil {
			t.dependents[owner] = map[Key]struct{}{}
		}
		t.dependents[owner][o.Key] = struct{}{}
	}
}

// dependentsOf returns the keys of an object's dependents, sorted so that the order of events is deterministic.
func (t *table) dependentsOf(owner types.UID) []Key {
	return slices.SortedFunc(maps.Keys(t.dependents[owner]), compareKeys)
}

func (t *table) keysIn(namespace string) []Key {
	if namespace == "" {
		return nil
	}
	var keys []Key
	for r, stored := range t.objects {
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
func (t *table) byUID(uid types.UID) *Object {
	for _, stored := range t.objects {
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

// podsOf returns the Pods bound to a Node, sorted. The store's lock is held.
func (t *table) podsOf(node string) []*Object {
	var bound []*Object
	for _, o := range t.objects[Pods()] {
		if nodeName(o.Unstructured()) == node {
			bound = append(bound, o)
		}
	}
	slices.SortFunc(bound, func(a, b *Object) int { return compareKeys(a.Key, b.Key) })
	return bound
}

func nodeName(pod *unstructured.Unstructured) string {
	node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
	return node
}

// checkNamespace rejects a new object whose namespace does not exist or is terminating.
func (t *table) checkNamespace(r Resource, namespace, objectName string) error {
	if namespace == "" {
		return nil
	}
	at := t.lookup(Key{Resource: Namespaces(), Name: namespace})
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
