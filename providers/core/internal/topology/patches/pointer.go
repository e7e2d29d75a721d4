package patches

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// operation is the operation of a JSON patch.
type operation string

const (
	add     operation = "add"
	replace operation = "replace"
	remove  operation = "remove"
)

var operations = []string{string(add), string(replace), string(remove)}

// appendIndex is the array index that means "after the last element".
const appendIndex = "-"

// pointer is a parsed JSON pointer (RFC 6901).
type pointer []string

var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

func parsePointer(path string) pointer {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i := range parts {
		parts[i] = unescapePointer.Replace(parts[i])
	}
	return parts
}

// String returns the pointer in the syntax of RFC 6901.
func (p pointer) String() string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var out strings.Builder
	for _, part := range p {
		out.WriteString("/")
		out.WriteString(escape.Replace(part))
	}
	return out.String()
}

// isIndex reports whether a part of a pointer can be the index of an array.
func isIndex(part string) bool {
	if part == appendIndex {
		return true
	}
	_, err := strconv.ParseUint(part, 10, 31)
	return err == nil
}

// applyAt applies an operation of RFC 6902 to a tree of JSON values and returns the tree, which is changed in place unless an
// array at the root changes its length. As the RFC requires, the parent of the target must exist, and for replace and remove
// the target, too. The value becomes part of the tree.
func applyAt(tree any, path pointer, op operation, value any) (any, error) {
	return applyBelow(tree, path, 0, op, value)
}

func applyBelow(node any, path pointer, depth int, op operation, value any) (any, error) {
	last := depth == len(path)-1
	switch node := node.(type) {
	case map[string]any:
		key := path[depth]
		if last {
			return node, applyToMap(node, path, op, value)
		}
		child, found := node[key]
		if !found {
			return nil, errNoParent(path, depth+1)
		}
		changed, err := applyBelow(child, path, depth+1, op, value)
		if err != nil {
			return nil, err
		}
		node[key] = changed
		return node, nil
	case []any:
		if last {
			return applyToArray(node, path, op, value)
		}
		i, err := index(path, depth, len(node)-1)
		if err != nil {
			return nil, err
		}
		changed, err := applyBelow(node[i], path, depth+1, op, value)
		if err != nil {
			return nil, err
		}
		node[i] = changed
		return node, nil
	case nil:
		return nil, errNoParent(path, depth)
	default:
		return nil, fmt.Errorf("%s is a %s, which has no fields", path[:depth], jsonType(node))
	}
}

func applyToMap(node map[string]any, path pointer, op operation, value any) error {
	key := path[len(path)-1]
	if _, found := node[key]; !found && op != add {
		return errNoTarget(path, op)
	}
	if op == remove {
		delete(node, key)
		return nil
	}
	node[key] = value
	return nil
}

func applyToArray(node []any, path pointer, op operation, value any) (any, error) {
	depth := len(path) - 1
	if op == add {
		if path[depth] == appendIndex {
			return append(node, value), nil
		}
		i, err := index(path, depth, len(node))
		if err != nil {
			return nil, err
		}
		return slices.Insert(node, i, value), nil
	}
	i, err := index(path, depth, len(node)-1)
	if err != nil {
		return nil, err
	}
	if op == remove {
		return slices.Delete(node, i, i+1), nil
	}
	node[i] = value
	return node, nil
}

// index parses the part of a path at depth as the index of an array, at most limit. Signs and leading zeros are invalid
// (RFC 6901): admission treats such parts as names of fields.
func index(path pointer, depth, limit int) (int, error) {
	i, err := strconv.Atoi(path[depth])
	if err != nil || strconv.Itoa(i) != path[depth] || i < 0 {
		return 0, fmt.Errorf("%s is an array: %q is not a valid index", path[:depth], path[depth])
	}
	if i > limit {
		return 0, fmt.Errorf("%s: index %d is out of range", path[:depth], i)
	}
	return i, nil
}

func errNoParent(path pointer, depth int) error {
	return fmt.Errorf("%s does not exist: add it in an earlier patch, or to the template", path[:depth])
}

func errNoTarget(path pointer, op operation) error {
	return fmt.Errorf("%s does not exist: op %s requires it", path, op)
}

func jsonType(value any) string {
	switch value.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case int64, float64:
		return "number"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	}
	return "null"
}
