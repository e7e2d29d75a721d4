package lossless

import (
	"math"
	"slices"
	"strings"
	"time"
)

// At returns an object in an object, or nil. Nil has no objects.
func At(object Object, path ...string) Object {
	for _, name := range path {
		object, _ = object[name].(Object)
	}
	return object
}

// Items returns the items of a list of objects; other items are skipped.
func Items(object Object, name string) []Object {
	list, _ := object[name].([]any)
	var items []Object
	for _, item := range list {
		if typed, ok := item.(Object); ok {
			items = append(items, typed)
		}
	}
	return items
}

// Move moves a field, if it is set, to another path from the same object. Objects on the way are created.
func Move(object Object, from, to []string) {
	if value, ok := take(object, from); ok {
		Put(object, value, to...)
	}
}

// MoveDuration moves a duration, such as 1m30s, to a field with the number of its seconds.
func MoveDuration(object Object, from, to []string) {
	value, _ := take(object, from)
	if seconds, ok := Seconds(value); ok {
		Put(object, seconds, to...)
	}
}

// MoveSeconds is the reverse of MoveDuration.
func MoveSeconds(object Object, from, to []string) {
	value, _ := take(object, from)
	if seconds, ok := value.(int64); ok {
		Put(object, Duration(seconds), to...)
	}
}

// Put sets a field. Objects on the way are created.
func Put(object Object, value any, path ...string) {
	for _, name := range path[:len(path)-1] {
		next, ok := object[name].(Object)
		if !ok {
			next = Object{}
			object[name] = next
		}
		object = next
	}
	object[path[len(path)-1]] = value
}

// take removes a field, and returns its value and whether it was set.
func take(object Object, path []string) (any, bool) {
	object = At(object, path[:len(path)-1]...)
	name := path[len(path)-1]
	value := object[name]
	if object != nil {
		delete(object, name)
	}
	return value, value != nil
}

// Seconds returns the whole seconds of a duration such as 1m30s, or the nearest number that fits into an int32. A part of a second alone
// counts as one: 0 means no limit, or at once.
func Seconds(value any) (int64, bool) {
	text, ok := value.(string)
	if !ok {
		return 0, false
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		return 0, false
	}
	if 0 < duration && duration < time.Second {
		return 1, true
	}
	return min(max(int64(duration/time.Second), math.MinInt32), math.MaxInt32), true
}

// Duration returns a number of seconds as a duration such as 1m30s.
func Duration(seconds int64) string {
	return (time.Duration(seconds) * time.Second).String()
}

// ListFromMap replaces a map of strings by a list of objects with name and value, sorted by name.
func ListFromMap(object Object, name string) {
	entries, ok := object[name].(Object)
	if !ok {
		return
	}
	list := make([]any, 0, len(entries))
	for key, value := range entries {
		list = append(list, Object{"name": key, "value": value})
	}
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(nameOf(a), nameOf(b)) })
	object[name] = list
}

// MapFromList is the reverse of ListFromMap. If a name occurs several times, the last value counts.
func MapFromList(object Object, name string) {
	list, ok := object[name].([]any)
	if !ok {
		return
	}
	entries := Object{}
	for _, item := range list {
		if typed, ok := item.(Object); ok {
			value, _ := typed["value"].(string)
			entries[nameOf(item)] = value
		}
	}
	object[name] = entries
}

// nameOf returns the name of an item.
func nameOf(item any) string {
	object, _ := item.(Object)
	name, _ := object["name"].(string)
	return name
}

// Parts returns the objects at a path in an object, in which a name that ends in [] is that of a list of objects.
func Parts(object Object, path ...string) []Object {
	parts := []Object{object}
	for _, name := range path {
		var next []Object
		list, isList := strings.CutSuffix(name, "[]")
		for _, part := range parts {
			if isList {
				next = append(next, Items(part, list)...)
			} else if nested := At(part, name); nested != nil {
				next = append(next, nested)
			}
		}
		parts = next
	}
	return parts
}

// Rename moves a field, if it is set, to another name.
func Rename(object Object, from, to string) { Move(object, []string{from}, []string{to}) }
