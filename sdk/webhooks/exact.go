package webhooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	jsonpatch "gomodules.xyz/jsonpatch/v2"
)

// This file computes patches without converting numbers: as float64, integers above 2^53 would be rounded.

// carryOver applies the changes between before and after to raw, like a JSON merge patch.
func carryOver(raw, before []byte, after any) ([]byte, error) {
	encoded, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	var trees [3]any
	for i, document := range [][]byte{before, encoded, raw} {
		if trees[i], err = decode(document); err != nil {
			return nil, err
		}
	}
	change, changed := difference(trees[0], trees[1])
	if !changed {
		return raw, nil
	}
	return json.Marshal(merged(trees[2], change))
}

// decode decodes JSON; numbers become json.Number.
func decode(document []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var tree any
	err := decoder.Decode(&tree)
	return tree, err
}

// items are the changes of a list that has not become shorter.
type items struct {
	// changed are the changes of items that it had, by position.
	changed map[int]any
	// whole is the list with these changes, and with those that were added to the end.
	whole []any
	// had is how many items it had.
	had int
}

// difference returns the merge patch between two trees; changed is false if they are equal. For lists, it has items.
func difference(before, after any) (change any, changed bool) {
	if was, is, lists := both[[]any](before, after); lists && len(was) <= len(is) {
		return differenceOfLists(was, is)
	}
	was, is, objects := both[map[string]any](before, after)
	if !objects {
		return after, !reflect.DeepEqual(before, after)
	}
	out := map[string]any{}
	for key := range was {
		if _, kept := is[key]; !kept {
			out[key] = nil
		}
	}
	for key, value := range is {
		old, existed := was[key]
		if !existed {
			out[key] = value
		} else if inner, differs := difference(old, value); differs {
			out[key] = inner
		}
	}
	return out, len(out) > 0
}

// both returns two values of the same type, and reports whether they are.
func both[T any](a, b any) (T, T, bool) {
	first, isFirst := a.(T)
	second, isSecond := b.(T)
	return first, second, isFirst && isSecond
}

func differenceOfLists(was, is []any) (change any, changed bool) {
	list := items{changed: map[int]any{}, whole: is, had: len(was)}
	for i := range was {
		if inner, differs := difference(was[i], is[i]); differs {
			list.changed[i] = inner
		}
	}
	return list, len(list.changed) > 0 || len(was) < len(is)
}

// merged applies a merge patch to a tree.
func merged(tree, change any) any {
	if list, ok := change.(items); ok {
		return mergedList(tree, list)
	}
	changes, isObject := change.(map[string]any)
	if !isObject {
		return change
	}
	object, _ := tree.(map[string]any)
	out := maps.Clone(object)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range changes {
		if value == nil {
			delete(out, key)
		} else {
			out[key] = merged(out[key], value)
		}
	}
	return out
}

// mergedList applies the changes of a list to another one. If that has another number of items, it is replaced.
func mergedList(tree any, list items) any {
	own, _ := tree.([]any)
	if len(own) != list.had {
		return list.whole
	}
	out := slices.Clone(own)
	for i, change := range list.changed {
		out[i] = merged(out[i], change)
	}
	return append(out, list.whole[list.had:]...)
}

// operationsBetween returns the JSON patch that turns one document into another. Lists are replaced as a whole.
func operationsBetween(raw, defaulted []byte) ([]jsonpatch.JsonPatchOperation, error) {
	before, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("decoding the object: %w", err)
	}
	after, err := decode(defaulted)
	if err != nil {
		return nil, fmt.Errorf("decoding the defaulted object: %w", err)
	}
	return appendOperations([]jsonpatch.JsonPatchOperation{}, "", before, after), nil
}

func appendOperations(all []jsonpatch.JsonPatchOperation, path string, before, after any) []jsonpatch.JsonPatchOperation {
	if reflect.DeepEqual(before, after) {
		return all
	}
	was, isObject := before.(map[string]any)
	is, staysObject := after.(map[string]any)
	if !isObject || !staysObject {
		return append(all, jsonpatch.NewOperation("replace", path, after))
	}
	keys := maps.Clone(was)
	maps.Copy(keys, is)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		at := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		old, existed := was[key]
		value, exists := is[key]
		switch {
		case !exists:
			all = append(all, jsonpatch.NewOperation("remove", at, nil))
		case !existed:
			all = append(all, jsonpatch.NewOperation("add", at, value))
		default:
			all = appendOperations(all, at, old, value)
		}
	}
	return all
}
