// Package difference compares what is stored of objects at two times: which were created or deleted, which fields have another value, and
// which managers of fields have written them. It is pure. Where the objects come from, and what differences mean, does not belong here.
package difference

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Stored is what is stored of an object, and the revision of its last write.
type Stored struct {
	Revision int64
	Content  []byte
}

// Effect is what happened to an object.
type Effect string

// The effects.
const (
	Created Effect = "created"
	// Deleted objects are gone, or their deletion has begun.
	Deleted Effect = "deleted"
	Changed Effect = "changed"
)

// Object is an object that differs.
type Object struct {
	// Key is that of the storage.
	Key string
	Effect
	// Fields are the paths of the fields that differ, sorted, after + if they were added, - if they were removed, and ~ if they have another
	// value. What follows from other changes is left out: managedFields, generations, and times of transitions. Nil unless Changed.
	Fields []string
	// Times reports whether a time of a transition differs.
	Times bool
	// Managers are the managers whose managed fields differ, as "NAME OPERATION SUBRESOURCE", sorted. Nil unless Changed.
	Managers []string
}

// Parse reads the content of an object.
type Parse func(content []byte) (map[string]any, error)

// Compare returns the objects that differ, sorted by key. Objects with the same revision do not.
func Compare(before, after map[string]Stored, parse Parse) ([]Object, error) {
	var found []Object
	for key, old := range before {
		now, ok := after[key]
		switch {
		case !ok:
			found = append(found, Object{Key: key, Effect: Deleted})
		case old.Revision != now.Revision:
			changed, err := compare(old.Content, now.Content, parse)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", key, err)
			}
			changed.Key = key
			found = append(found, changed)
		}
	}
	for key := range after {
		if _, ok := before[key]; !ok {
			found = append(found, Object{Key: key, Effect: Created})
		}
	}
	slices.SortFunc(found, func(a, b Object) int { return strings.Compare(a.Key, b.Key) })
	return found, nil
}

func compare(before, after []byte, parse Parse) (Object, error) {
	was, err := parse(before)
	if err != nil {
		return Object{}, err
	}
	is, err := parse(after)
	if err != nil {
		return Object{}, err
	}
	o := Object{Effect: Changed, Managers: managersChanged(was, is)}
	for _, field := range Fields(was, is) {
		path := field[2:]
		switch {
		case field == "+ .metadata.deletionTimestamp":
			o.Effect = Deleted
		case strings.HasSuffix(path, ".lastTransitionTime"):
			o.Times = true
		case !strings.HasPrefix(path, ".metadata.managedFields[") && !strings.HasSuffix(strings.ToLower(path), "generation"):
			o.Fields = append(o.Fields, field)
		}
	}
	if o.Effect == Deleted {
		return Object{Effect: Deleted}, nil
	}
	return o, nil
}

// managersChanged returns the field managers whose fields differ, sorted.
func managersChanged(before, after map[string]any) []string {
	of := func(object map[string]any) map[string]string {
		out := map[string]string{}
		for _, e := range (&unstructured.Unstructured{Object: object}).GetManagedFields() {
			fields := ""
			if e.FieldsV1 != nil { // Clients can write any entries.
				fields = e.FieldsV1.String()
			}
			out[e.Manager+" "+string(e.Operation)+" "+e.Subresource] += e.APIVersion + fields
		}
		return out
	}
	was, is := of(before), of(after)
	maps.DeleteFunc(is, func(manager, fields string) bool {
		same := was[manager] == fields
		delete(was, manager)
		return same
	})
	maps.Copy(is, was)
	return slices.Sorted(maps.Keys(is))
}

// Fields returns the paths of the fields that differ between two objects, after +, - or ~, sorted by path.
func Fields(before, after map[string]any) []string {
	old, now := map[string]string{}, map[string]string{}
	flatten("", before, old)
	flatten("", after, now)
	var found []string
	for path, value := range old {
		if next, ok := now[path]; !ok {
			found = append(found, "- "+path)
		} else if next != value {
			found = append(found, "~ "+path)
		}
	}
	for path := range now {
		if _, ok := old[path]; !ok {
			found = append(found, "+ "+path)
		}
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(strings.Compare(a[2:], b[2:]), strings.Compare(a, b)) })
	return found
}

// flatten adds the fields of a value by their path. Elements of lists are identified by what they are about, as far as they say so.
func flatten(path string, value any, into map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 {
			into[path] = "{}"
		}
		for key, field := range v {
			flatten(path+"."+key, field, into)
		}
	case []any:
		for i, element := range v {
			flatten(fmt.Sprintf("%s[%s]", path, identity(i, element)), element, into)
		}
	default:
		into[path] = fmt.Sprint(v)
	}
}

func identity(i int, element any) string {
	fields, _ := element.(map[string]any)
	return fmt.Sprint(cmp.Or(fields["type"], fields["uid"], fields["name"], any(i)))
}
