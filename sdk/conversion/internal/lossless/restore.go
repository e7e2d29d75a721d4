package lossless

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// lost returns the fields of an object which differ from those that it has after it was converted to the other version and back. A
// field that it has only then is null.
func (k *Kind[Hub, Spoke]) lost(object, back Object, names ...string) fields {
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
func (k *Kind[Hub, Spoke]) differing(own, other Object) Object {
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
func (k *Kind[Hub, Spoke]) restore(lost, shown, object Object) {
	for name, value := range lost {
		before, wasShown := shown[name]
		now, exists := object[name]
		lostObject, isObject := value.(Object)
		nowObject, isNowObject := now.(Object)
		nested := isObject && !slices.Contains(k.Whole, name) &&
			(isNowObject || !exists && wasShown && slices.Contains(k.Grouping, name))
		switch {
		case value == nil:
			if exists && reflect.DeepEqual(before, now) {
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

// restoreItems restores the lost fields of the items of a list that has changed. It finds an item by the fields that identify it.
func (k *Kind[Hub, Spoke]) restoreItems(lost, shown, list any) any {
	lostItems, _ := lost.([]any)
	shownItems, _ := shown.([]any)
	items, isList := list.([]any)
	if !isList {
		return list
	}
	for i, item := range items {
		object, ok := item.(Object)
		if !ok {
			return list
		}
		before, saved := find(shownItems, object), find(lostItems, object)
		if before != nil && saved != nil {
			k.restore(k.differing(saved, before), before, object)
			items[i] = object
		}
	}
	return items
}

// find returns the item of a list that is identified like object, or nil.
func find(items []any, object Object) Object {
	for _, key := range []string{"path", "hostPath", "device", "token", "name", "type"} {
		id, ok := object[key]
		if !ok {
			continue
		}
		for _, item := range items {
			if candidate, ok := item.(Object); ok && reflect.DeepEqual(candidate[key], id) {
				return candidate
			}
		}
		return nil
	}
	return nil
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
func (k *Kind[Hub, Spoke]) prune(object Object) {
	for _, name := range []string{"spec", "status"} {
		if part, ok := object[name].(Object); ok {
			k.pruneObject(part)
		}
	}
}

// pruneObject removes what is empty from an object.
func (k *Kind[Hub, Spoke]) pruneObject(object Object) {
	for name, value := range object {
		if k.pruneValue(value) && (value == nil || !slices.Contains(k.Present, name)) {
			delete(object, name)
		}
	}
}

// pruneValue removes what is empty from a value, and reports whether it is empty itself.
func (k *Kind[Hub, Spoke]) pruneValue(value any) bool {
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
