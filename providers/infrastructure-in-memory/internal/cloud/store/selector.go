package store

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// Selector restricts a list or a watch. The zero value selects everything.
type Selector struct {
	// Labels selects by labels; nil selects all.
	Labels labels.Selector
	// Fields selects by the values at dotted paths such as metadata.name or spec.nodeName; nil selects all. A missing
	// value is the empty string. Callers check which paths a resource supports.
	Fields fields.Selector
}

func (s Selector) matches(o *Object) bool {
	if s.Labels != nil && !s.Labels.Empty() && !s.Labels.Matches(o.labels) {
		return false
	}
	if s.Fields == nil || s.Fields.Empty() {
		return true
	}
	var content map[string]any
	for _, r := range s.Fields.Requirements() {
		switch r.Field {
		case "metadata.name", "metadata.namespace":
		default:
			content = o.Unstructured().Object
		}
	}
	return s.Fields.Matches(objectFields{o: o, content: content})
}

// apply converts a change for a watch with this selector; false if the selector does not match.
func (s Selector) apply(e Event) (Event, bool) {
	now := s.matches(e.Object)
	before := e.Previous != nil && s.matches(e.Previous)
	switch {
	case e.Type == watch.Deleted:
		return e, before
	case now && before:
		return Event{Type: watch.Modified, Object: e.Object, Previous: e.Previous}, true
	case now:
		return Event{Type: watch.Added, Object: e.Object}, true
	case before:
		return Event{Type: watch.Deleted, Object: e.Object, Previous: e.Previous}, true
	}
	return e, false
}

// objectFields provides an object's values to a field selector. content is only decoded if a selector requires more than
// the key.
type objectFields struct {
	o       *Object
	content map[string]any
}

// Has implements fields.Fields.
func (f objectFields) Has(path string) bool { return f.Get(path) != "" }

// Get implements fields.Fields.
func (f objectFields) Get(path string) string {
	switch path {
	case "metadata.name":
		return f.o.Key.Name
	case "metadata.namespace":
		return f.o.Key.Namespace
	}
	value, found, err := unstructured.NestedFieldNoCopy(f.content, strings.Split(path, ".")...)
	if !found || err != nil || value == nil {
		return ""
	}
	return fmt.Sprint(value)
}
