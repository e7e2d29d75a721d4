package object

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Number is how validation treats a number, duration or time of a spec: values of type int, string (of an IntOrString) or time.Duration
// that are rejected with the name of the field, and values that are accepted, and why if that is all.
type Number struct {
	Rejected []any
	Accepted []any
	Because  string
}

// Numbered is a kind with numbers: Spec is the third field of its objects.
type Numbered struct {
	New      func() any
	Validate func(any) field.ErrorList
}

// CheckNumbers checks that every number of every kind is in the table, as <kind>.<path below spec>, and is treated as it says: a new
// field cannot be forgotten. Fields whose name is in elsewhere are left out, with all below them.
func CheckNumbers(t *testing.T, table map[string]Number, elsewhere map[string]string, kinds map[string]Numbered) {
	t.Helper()
	unseen := map[string]bool{}
	for name := range table {
		unseen[name] = true
	}
	for name, kind := range kinds {
		for _, path := range numbersIn(reflect.TypeOf(kind.New()).Elem().Field(2).Type, nil, elsewhere) {
			full := name + "." + strings.ReplaceAll(strings.Join(path, "."), ".[]", "[]")
			rule, known := table[full]
			if !known {
				t.Errorf("%s is not in the table: decide which values are rejected", full)
				continue
			}
			delete(unseen, full)
			for _, value := range rule.Rejected {
				if errs := kind.Validate(with(kind.New(), path, value)); !has(errs, path) {
					t.Errorf("%s: %v is accepted: %v", full, value, errs)
				}
			}
			for _, value := range rule.Accepted {
				if errs := kind.Validate(with(kind.New(), path, value)); has(errs, path) {
					t.Errorf("%s: %v is rejected: %v", full, value, errs)
				}
			}
		}
	}
	if len(unseen) > 0 {
		t.Errorf("fields of the table that do not exist: %v", unseen)
	}
}

func has(errs field.ErrorList, path []string) bool {
	want := "spec." + strings.ReplaceAll(strings.Join(path, "."), ".[]", "[0]")
	return slices.ContainsFunc(errs, func(e *field.Error) bool { return e.Field == want })
}

// numbersIn returns the paths of all numbers, durations and times in a type.
func numbersIn(t reflect.Type, path []string, elsewhere map[string]string) [][]string {
	if len(path) > 0 && elsewhere[path[len(path)-1]] != "" {
		return nil
	}
	switch t {
	case reflect.TypeFor[metav1.Duration](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[intstr.IntOrString]():
		return [][]string{path}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return numbersIn(t.Elem(), path, elsewhere)
	case reflect.Slice, reflect.Map:
		return numbersIn(t.Elem(), append(slices.Clone(path), "[]"), elsewhere)
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		return [][]string{path}
	case reflect.Struct:
		var all [][]string
		for i := range t.NumField() {
			f := t.Field(i)
			at := slices.Clone(path)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				at = append(at, name)
			}
			all = append(all, numbersIn(f.Type, at, elsewhere)...)
		}
		return all
	}
	return nil
}

// with sets a number in the spec of an object. Lists on the way get one element.
func with(obj any, path []string, value any) any {
	v := reflect.ValueOf(obj).Elem().Field(2)
	for _, name := range path {
		v = filled(v)
		if name == "[]" {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			v = v.Index(0)
			continue
		}
		v = member(v, name)
	}
	v = filled(v)
	switch value := value.(type) {
	case int:
		if v.Type() == reflect.TypeFor[intstr.IntOrString]() {
			v.Set(reflect.ValueOf(intstr.FromInt32(int32(value))))
			break
		}
		v.SetInt(int64(value))
	case string:
		v.Set(reflect.ValueOf(intstr.FromString(value)))
	case time.Duration:
		v.Set(reflect.ValueOf(metav1.Duration{Duration: value}))
	default:
		panic(fmt.Sprintf("%T", value))
	}
	return obj
}

func filled(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Pointer {
		return v
	}
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	return v.Elem()
}

// member returns the field with a JSON name.
func member(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		if tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); tag == name {
			return v.Field(i)
		}
	}
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous {
			return member(v.Field(i), name)
		}
	}
	panic(name)
}

// FieldErrors returns the fields that an error of a webhook names.
func FieldErrors(err error) field.ErrorList {
	var all field.ErrorList
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			all = append(all, &field.Error{Field: cause.Field, Detail: cause.Message})
		}
	}
	return all
}
