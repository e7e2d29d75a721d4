package lossless

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// lost returns the fields of an object which differ from those that it has after it was converted to the other version and back. A
// field that it has only then is null.
func (k *Kind) lost(object, back Object, names ...string) fields {
	result := fields{}
	for _, name := range names {
		own, _ := object[name].(Object)
		other, _ := back[name].(Object)
		if differing := k.differing(own, other); len(differing) > 0 {
			result[name] = differing
		}
	}
	return result
}

// differing returns the fields of own that differ from other.
func (k *Kind) differing(own, other Object) Object {
	result := Object{}
	for name, value := range own {
		otherValue, ok := other[name]
		if ok && reflect.DeepEqual(value, otherValue) {
			continue
		}
		object, isObject := value.(Object)
		otherObject, isOtherObject := otherValue.(Object)
		if !isObject || !isOtherObject || slices.Contains(k.Whole, name) {
			result[name] = runtime.DeepCopyJSONValue(value)
			continue
		}
		if nested := k.differing(object, otherObject); len(nested) > 0 {
			result[name] = nested
		}
	}
	for name := range other {
		if _, ok := own[name]; !ok {
			result[name] = nil
		}
	}
	return result
}

// restore sets the lost fields of an object that have not changed since the other version showed them.
func (k *Kind) restore(lost, shown, object Object) {
	for name, value := range lost {
		before, wasShown := shown[name]
		now, exists := object[name]
		lostObject, isObject := value.(Object)
		nowObject, isNowObject := now.(Object)
		nested := isObject && !slices.Contains(k.Whole, name) &&
			(isNowObject || !exists && wasShown && slices.Contains(k.Grouping, name))
		switch {
		case value == nil:
			if exists && (reflect.DeepEqual(before, now) || isNowObject && isEmpty(now)) {
				delete(object, name)
			}
		case nested:
			beforeObject, _ := before.(Object)
			if nowObject == nil {
				nowObject = Object{}
			}
			k.restore(lostObject, beforeObject, nowObject)
			if exists || len(nowObject) > 0 {
				object[name] = nowObject
			}
		case exists == wasShown && reflect.DeepEqual(before, now):
			object[name] = runtime.DeepCopyJSONValue(value)
		case exists:
			object[name] = k.restoreItems(value, before, now)
		}
	}
}

// restoreItems restores the lost fields of the items of a list that has changed.
func (k *Kind) restoreItems(lost, shown, list any) any {
	lostItems, _ := lost.([]any)
	shownItems, _ := shown.([]any)
	items, isList := list.([]any)
	if !isList {
		return list
	}
	saved, visible := newIndex(lostItems, len(shownItems)), newIndex(shownItems, len(items))
	for i, item := range items {
		object, ok := item.(Object)
		if !ok {
			return list
		}
		if at := visible.take(object, i); at >= 0 {
			before, _ := shownItems[at].(Object)
			if at := saved.take(before, at); at >= 0 {
				own, _ := lostItems[at].(Object)
				k.restore(k.differing(own, before), before, object)
			}
		}
	}
	return items
}

// index finds the items of a list.
type index struct {
	items []any
	used  []bool
	byID  map[string][]int
	// positions is set if items without an identity are found by their position.
	positions bool
}

// newIndex returns an index for finding the items of another list with a number of items.
func newIndex(items []any, others int) *index {
	x := &index{items: items, used: make([]bool, len(items)), byID: map[string][]int{}, positions: len(items) == others}
	for i, item := range items {
		object, _ := item.(Object)
		id := identity(object)
		x.byID[id] = append(x.byID[id], i)
	}
	return x
}

// take returns the position of the item that is identified like object, the one at position i if possible, or -1. It returns each
// position once.
func (x *index) take(object Object, i int) int {
	id := identity(object)
	if id == "" && !x.positions {
		return -1
	}
	if i < len(x.items) && !x.used[i] {
		if candidate, ok := x.items[i].(Object); ok && identity(candidate) == id {
			x.used[i] = true
			return i
		}
	}
	for id != "" && len(x.byID[id]) > 0 {
		at := x.byID[id][0]
		x.byID[id] = x.byID[id][1:]
		if !x.used[at] {
			x.used[at] = true
			return at
		}
	}
	return -1
}

// identity returns what identifies an item of a list, or nothing.
func identity(object Object) string {
	for _, key := range []string{"path", "hostPath", "device", "token", "name", "class", "type", "from", "conditionType", "key"} {
		if id, ok := object[key].(string); ok {
			status, _ := object["status"].(string)
			return key + "=" + id + "," + status // Unhealthy conditions have a type several times.
		}
	}
	return ""
}

// dropLists drops the lists of an object that are not lost.
func dropLists(object, lost Object) {
	for name, value := range object {
		switch typed := value.(type) {
		case Object:
			nested, _ := lost[name].(Object)
			dropLists(typed, nested)
		case []any:
			if _, ok := lost[name]; !ok {
				delete(object, name)
			}
		}
	}
}

// prune removes empty objects and lists, and null, from the spec and the status.
func (k *Kind) prune(object Object) {
	for _, name := range []string{"spec", "status"} {
		if part, ok := object[name].(Object); ok && !slices.Contains(k.Verbatim, name) {
			k.pruneObject(part)
		}
	}
}

// pruneObject removes what is empty from an object.
func (k *Kind) pruneObject(object Object) {
	for name, value := range object {
		if slices.Contains(k.Verbatim, name) {
			continue
		}
		if entries, ok := value.(Object); ok && len(entries) > 0 && slices.Contains(keyed(), name) {
			for _, entry := range entries {
				k.pruneValue(entry)
			}
			continue
		}
		if k.pruneValue(value) && (value == nil || !slices.Contains(k.Present, name)) {
			delete(object, name)
		}
	}
}

// keyed returns the names of maps: an entry exists even if it is empty.
func keyed() []string { return []string{"failureDomains"} }

// pruneValue removes what is empty from a value, and reports whether it is empty itself.
func (k *Kind) pruneValue(value any) bool {
	switch typed := value.(type) {
	case nil:
		return true
	case Object:
		k.pruneObject(typed)
		return len(typed) == 0
	case []any:
		for _, item := range typed {
			k.pruneValue(item)
		}
		return len(typed) == 0
	}
	return false
}
