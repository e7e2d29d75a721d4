package topologymutation

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
)

// operation is an operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// operationsOf returns a JSON merge patch of a document as operations of a JSON patch, sorted by path, so that equal changes are equal
// patches. Lists are replaced as a whole.
func operationsOf(document, merge []byte) ([]operation, error) {
	var current, changes map[string]any
	if err := json.Unmarshal(document, &current); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(merge, &changes); err != nil {
		return nil, err
	}
	return appendOperations(nil, "", current, changes), nil
}

func appendOperations(out []operation, path string, current, changes map[string]any) []operation {
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		change := changes[name]
		at := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		value, exists := current[name]
		fields, isObject := value.(map[string]any)
		changed, changesObject := change.(map[string]any)
		switch {
		case change == nil && exists:
			out = append(out, operation{Op: "remove", Path: at})
		case change == nil:
		case isObject && changesObject:
			out = appendOperations(out, at, fields, changed)
		case exists:
			out = append(out, operation{Op: "replace", Path: at, Value: change})
		default:
			out = append(out, operation{Op: "add", Path: at, Value: change})
		}
	}
	return out
}
