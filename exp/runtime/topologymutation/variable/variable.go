// Package variable reads the values of variables of a ClusterClass by reference: "dnsServers[0]", "httpProxy.url".
//
// What does not belong here: which variables exist, and who sees them (providers/core/internal/topology).
package variable

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// ErrNotSet means that a variable, or the part of it that is referenced, is not set.
var ErrNotSet = errors.New("is not set")

// Reference refers to a variable or a part of it.
type Reference struct {
	source string
	steps  []any
}

// Parse parses a reference. Names can contain any characters except "." and "[".
func Parse(source string) (Reference, error) {
	out := Reference{source: source}
	for part := range strings.SplitSeq(source, ".") {
		name, indexes, indexed := strings.Cut(part, "[")
		if name == "" {
			return Reference{}, fmt.Errorf("%q contains an empty name", source)
		}
		out.steps = append(out.steps, name)
		if !indexed {
			continue
		}
		inner, closed := strings.CutSuffix(indexes, "]")
		if !closed {
			return Reference{}, fmt.Errorf(`%q: "]" is missing after %q`, source, part)
		}
		for digits := range strings.SplitSeq(inner, "][") {
			i, err := strconv.ParseUint(digits, 10, 31)
			if err != nil {
				return Reference{}, fmt.Errorf("%q: %q is not an index", source, digits)
			}
			out.steps = append(out.steps, int(i))
		}
	}
	return out, nil
}

// Name returns the name of the variable.
func (r Reference) Name() string { return r.steps[0].(string) }

// Steps returns the way from all values to the referenced one: a string for a field, beginning with the name of the variable, an int for an
// index.
func (r Reference) Steps() []any { return r.steps }

// Get returns a copy of the referenced value, or an error that is an ErrNotSet.
func (r Reference) Get(values map[string]any) (any, error) {
	var current any = values
	for _, step := range r.steps {
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
			return nil, fmt.Errorf("variable %q %w", r.source, ErrNotSet)
		}
	}
	return runtime.DeepCopyJSONValue(current), nil
}
