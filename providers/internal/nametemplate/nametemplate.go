// Package nametemplate computes names of objects from the templates that users set, within bounds.
package nametemplate

import (
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"sigs.k8s.io/cluster-api/providers/internal/gotemplate"
	"sigs.k8s.io/cluster-api/sdk/naming"
)

// Limits of a template: bytes rendered, and work in units of gotemplate.Budget. Names are truncated further.
const (
	maxRendered = 1 << 10
	maxWork     = 1 << 16
)

// Render executes a template with data and .random, the characters that make the name unique. A name that is too long for a label
// value is truncated and ends with them, so that it stays unique.
func Render(source string, data map[string]any, random string) (string, error) {
	parser := gotemplate.NewParser(gotemplate.Options{Name: "name", Strict: true, Output: maxRendered, Work: maxWork})
	parsed, err := parser.Parse(source)
	if err != nil {
		return "", err
	}
	all := map[string]any{"random": random}
	maps.Copy(all, data)
	out, err := parsed.Execute(all, nil)
	if err != nil {
		return "", err
	}
	name := string(out)
	if len(name) > validation.LabelValueMaxLength {
		name = naming.Limit(name, random)
	}
	return name, nil
}

// Named returns the data for an object: its name under the name of its kind in templates, such as machineSet.
func Named(kind, name string) map[string]any {
	return map[string]any{kind: map[string]string{"name": name}}
}

// OfMachine returns the data for names of Machines, of an owner with a name.
func OfMachine(cluster, owner, name string) map[string]any {
	data := Named("cluster", cluster)
	maps.Copy(data, Named(owner, name))
	return data
}

// CheckMachine validates the template of names of Machines; empty means the default. Names must be valid, and differ in .random.
func CheckMachine(source, owner string, path *field.Path) field.ErrorList {
	if source == "" {
		return nil
	}
	data := OfMachine("cluster", owner, "owner")
	first, err := Render(source, data, "bcdfg")
	if errs := Check(source, first, err, path); len(errs) > 0 {
		return errs
	}
	if second, err := Render(source, data, "hjklm"); err == nil && first == second {
		return field.ErrorList{field.Invalid(path, source, "must contain {{ .random }}: several Machines would have the same name")}
	}
	return nil
}

// Check validates a template by a sample of what it renders, or the error of that.
func Check(source, sample string, err error, path *field.Path) field.ErrorList {
	if _, ok := errors.AsType[*gotemplate.LimitError](err); ok {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	if err != nil {
		return field.ErrorList{field.Invalid(path, source, err.Error())}
	}
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Subdomain(sample) {
		errs = append(errs, field.Invalid(path, source, fmt.Sprintf("yields invalid names such as %q: %s", sample, problem)))
	}
	return errs
}
