package patches

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// errNotSet means that a variable, or the part of it that is referenced, is not set.
var errNotSet = errors.New("is not set")

// lookup is a parsed reference to a variable or a part of it: "dnsServers[0]", "httpProxy.url".
type lookup struct {
	source string
	steps  []any // string for a field, int for an index
}

// parseLookup parses a reference. Names can contain any characters except "." and "[".
func parseLookup(source string) (lookup, error) {
	out := lookup{source: source}
	for part := range strings.SplitSeq(source, ".") {
		name, indexes, indexed := strings.Cut(part, "[")
		if name == "" {
			return lookup{}, fmt.Errorf("%q contains an empty name", source)
		}
		out.steps = append(out.steps, name)
		if !indexed {
			continue
		}
		inner, closed := strings.CutSuffix(indexes, "]")
		if !closed {
			return lookup{}, fmt.Errorf(`%q: "]" is missing after %q`, source, part)
		}
		for digits := range strings.SplitSeq(inner, "][") {
			i, err := strconv.ParseUint(digits, 10, 31)
			if err != nil {
				return lookup{}, fmt.Errorf("%q: %q is not an index", source, digits)
			}
			out.steps = append(out.steps, int(i))
		}
	}
	return out, nil
}

// name returns the name of the variable.
func (l lookup) name() string { return l.steps[0].(string) }

// get returns a copy of the referenced value.
func (l lookup) get(values map[string]any) (any, error) {
	var current any = values
	for _, step := range l.steps {
		var found bool
		switch step := step.(type) {
		case string:
			object, _ := current.(map[string]any)
			current, found = object[step]
		case int:
			list, _ := current.([]any)
			if found = step < len(list); found {
				current = list[step]
			}
		}
		if !found {
			return nil, fmt.Errorf("variable %q %w", l.source, errNotSet)
		}
	}
	return runtime.DeepCopyJSONValue(current), nil
}
