package patches

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/exp/runtime/topologymutation/variable"
	"sigs.k8s.io/cluster-api/providers/internal/gotemplate"
)

// value computes the value of a JSON patch. The caller may modify the result. Its size is charged to the budget.
type value interface {
	compute(values map[string]any, budget *gotemplate.Budget) (any, error)
}

type constant struct{ value any }

func (c constant) compute(_ map[string]any, budget *gotemplate.Budget) (any, error) {
	if err := budget.SpendOn(c.value); err != nil {
		return nil, err
	}
	return runtime.DeepCopyJSONValue(c.value), nil
}

type reference struct{ variable.Reference }

func (r reference) compute(values map[string]any, budget *gotemplate.Budget) (any, error) {
	found, err := r.Get(values)
	if err == nil {
		err = budget.SpendOn(found)
	}
	if errors.Is(err, variable.ErrNotSet) {
		return nil, fmt.Errorf("%w: set a value or a default, or disable the patch without a value by enabledIf", err)
	}
	return found, err
}

type rendered struct{ template *gotemplate.Template }

func (r rendered) compute(values map[string]any, budget *gotemplate.Budget) (any, error) {
	out, err := r.template.Execute(values, budget)
	if err != nil {
		return nil, err
	}
	parsed, err := parseValue(out)
	if err == nil {
		err = budget.SpendOn(parsed)
	}
	return parsed, err
}

func compileValue(p *gotemplate.Parser, patch *clusterv1.JSONPatch) (value, error) {
	switch {
	case patch.Value != nil:
		parsed, err := parseJSON(patch.Value.Raw)
		return constant{parsed}, err
	case patch.ValueFrom != nil && patch.ValueFrom.Variable != "":
		l, err := variable.Parse(patch.ValueFrom.Variable)
		return reference{l}, err
	case patch.ValueFrom != nil && patch.ValueFrom.Template != "":
		parsed, err := p.Parse(patch.ValueFrom.Template)
		return rendered{parsed}, err
	}
	return nil, errors.New("neither value nor valueFrom is set")
}
