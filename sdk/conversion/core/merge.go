package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// mergeObjects applies to an object the changes from base to changed, and returns the result as JSON. All three have the same type.
func mergeObjects(before, base, changed Object) ([]byte, error) {
	trees := make([]map[string]any, 0, 3)
	for _, o := range []Object{before, base, changed} {
		tree, err := treeOf(o)
		if err != nil {
			return nil, err
		}
		trees = append(trees, tree)
	}
	content, err := json.Marshal(merge(trees[0], trees[1], trees[2]))
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return content, nil
}

// isLossy reports whether an object differs from its translation there and back.
func isLossy(from, back Object) (bool, error) {
	before, err := treeOf(from)
	if err != nil {
		return false, err
	}
	after, err := treeOf(back)
	if err != nil {
		return false, err
	}
	return !reflect.DeepEqual(merge(before, after, after), any(after)), nil
}

// treeOf returns an object as maps, lists and values, without metadata and empty maps.
func treeOf(o Object) (map[string]any, error) {
	content, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	tree := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	for _, name := range []string{"metadata", "apiVersion", "kind"} {
		delete(tree, name)
	}
	return tree, nil
}

// merge applies to before what changed from base to changed. Where base equals changed, the result is before: also what base does not
// have at all, because the other version has no field for it.
func merge(before, base, changed any) any {
	switch was := before.(type) {
	case map[string]any:
		if now, ok := changed.(map[string]any); ok && !isReference(now) {
			middle, _ := base.(map[string]any)
			return mergeMaps(was, middle, now)
		} else if ok {
			return now
		}
	case []any:
		now, ok := changed.([]any)
		middle, _ := base.([]any)
		if key := keyOf(was, middle, now); ok && key != "" {
			return mergeLists(was, middle, now, key)
		}
	}
	if reflect.DeepEqual(base, changed) {
		return before
	}
	return changed
}

func mergeMaps(before, base, changed map[string]any) map[string]any {
	merged := map[string]any{}
	for name, now := range changed {
		was, had := before[name]
		middle, between := base[name]
		switch {
		case had:
			merged[name] = merge(was, middle, now)
		case between && reflect.DeepEqual(middle, now):
			// The translation there and back adds it, so that it is no change.
		default:
			merged[name] = now
		}
	}
	for name, was := range before {
		if _, is := changed[name]; is {
			continue
		}
		middle, between := base[name]
		if !between {
			merged[name] = was
			continue
		}
		// It was removed, but not the fields in it that the client could not see. Those of a reference are part of it.
		rest, _ := was.(map[string]any)
		if isReference(rest) {
			continue
		}
		visible, _ := middle.(map[string]any)
		if rest = mergeMaps(rest, visible, nil); len(rest) > 0 {
			merged[name] = rest
		}
	}
	return merged
}

// mergeLists merges the elements with equal keys, in the order of changed.
func mergeLists(before, base, changed []any, key string) []any {
	was, middle := byKey(before, key), byKey(base, key)
	merged := make([]any, 0, len(changed))
	for _, now := range changed {
		name := now.(map[string]any)[key].(string)
		if element, ok := was[name]; ok {
			now = merge(element, middle[name], now)
		}
		merged = append(merged, now)
	}
	return merged
}

// byKey returns the elements of a list by the value of a key. Keys are unique strings.
func byKey(list []any, key string) map[string]any {
	elements := map[string]any{}
	for _, element := range list {
		elements[element.(map[string]any)[key].(string)] = element
	}
	return elements
}

// keyOf returns the field that identifies the elements of lists: present in all of them, and unique in each list. It returns an empty
// string if there is none.
func keyOf(lists ...[]any) string {
	for _, key := range []string{"name", "class", "type", "from", "clusterResourceSetName"} {
		if isKey(key, lists) {
			return key
		}
	}
	return ""
}

func isKey(key string, lists [][]any) bool {
	for _, list := range lists {
		seen := map[string]bool{}
		for _, element := range list {
			fields, _ := element.(map[string]any)
			name, ok := fields[key].(string)
			if !ok || seen[name] {
				return false
			}
			seen[name] = true
		}
	}
	return true
}

// isReference reports whether fields are a reference. Its version and namespace depend on what is installed, so those of
// before must not be restored.
func isReference(fields map[string]any) bool {
	_, version := fields["apiVersion"].(string)
	_, kind := fields["kind"].(string)
	_, name := fields["name"].(string)
	return version && kind && name
}
