package topologymutation

import (
	"errors"
	"fmt"
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/topologymutation/variable"
)

// builtin is the variable whose values for a template extend, instead of replace, those of the request.
const builtin = "builtin"

// ToMap returns variables by name.
func ToMap(variables []runtimehooksv1.Variable) map[string]apiextensionsv1.JSON {
	out := make(map[string]apiextensionsv1.JSON, len(variables))
	for i := range variables {
		out[variables[i].Name] = variables[i].Value
	}
	return out
}

// MergeVariableMaps merges variables; later maps override earlier ones. Values of the variable builtin are merged field by field.
func MergeVariableMaps(all ...map[string]apiextensionsv1.JSON) (map[string]apiextensionsv1.JSON, error) {
	out := map[string]apiextensionsv1.JSON{}
	var builtins map[string]any
	for _, m := range all {
		maps.Copy(out, m)
		value, ok := m[builtin]
		if !ok {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(value.Raw, &fields); err != nil {
			return nil, fmt.Errorf("cannot decode variable %q: %w", builtin, err)
		}
		builtins = overlay(builtins, fields)
	}
	if builtins != nil {
		raw, err := json.Marshal(builtins)
		if err != nil {
			return nil, fmt.Errorf("cannot encode variable %q: %w", builtin, err)
		}
		out[builtin] = apiextensionsv1.JSON{Raw: raw}
	}
	return out, nil
}

// overlay sets the fields of over in base, and merges objects that both have.
func overlay(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]any{}
	}
	for name, value := range over {
		below, belowIs := out[name].(map[string]any)
		above, aboveIs := value.(map[string]any)
		if belowIs && aboveIs {
			value = overlay(below, above)
		}
		out[name] = value
	}
	return out
}

// IsNotFoundError reports whether a variable, or the referenced part of it, is not set.
func IsNotFoundError(err error) bool { return errors.Is(err, variable.ErrNotSet) }

// GetVariable returns a variable or a part of it: "httpProxy", "httpProxy.url", "dnsServers[0]", "builtin.cluster.name". IsNotFoundError
// recognizes the error if it is not set.
func GetVariable(variables map[string]apiextensionsv1.JSON, name string) (*apiextensionsv1.JSON, error) {
	reference, err := variable.Parse(name)
	if err != nil {
		return nil, fmt.Errorf("cannot get variable: %w", err)
	}
	values := map[string]any{}
	if whole, ok := variables[reference.Name()]; ok {
		if len(reference.Steps()) == 1 {
			return &whole, nil
		}
		var decoded any
		if err := json.Unmarshal(whole.Raw, &decoded); err != nil {
			return nil, fmt.Errorf("cannot decode variable %q: %w", reference.Name(), err)
		}
		values[reference.Name()] = decoded
	}
	value, err := reference.Get(values)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("cannot encode variable %q: %w", name, err)
	}
	return &apiextensionsv1.JSON{Raw: raw}, nil
}

// GetObjectVariableInto decodes a variable, or a part of it, into a pointer. See GetVariable.
func GetObjectVariableInto(variables map[string]apiextensionsv1.JSON, name string, into any) error {
	value, err := GetVariable(variables, name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(value.Raw, into); err != nil {
		return fmt.Errorf("cannot decode variable %q: %w", name, err)
	}
	return nil
}

// GetStringVariable returns a string. See GetVariable.
func GetStringVariable(variables map[string]apiextensionsv1.JSON, name string) (string, error) {
	var out string
	err := GetObjectVariableInto(variables, name, &out)
	return out, err
}

// GetBoolVariable returns a boolean. See GetVariable.
func GetBoolVariable(variables map[string]apiextensionsv1.JSON, name string) (bool, error) {
	var out bool
	err := GetObjectVariableInto(variables, name, &out)
	return out, err
}
