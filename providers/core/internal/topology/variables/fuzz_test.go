package variables

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// FuzzSchema checks that schemas that admission accepts compile, that defaulting is idempotent, that the default of a missing
// value is valid, and that validation is deterministic and does not change the value.
func FuzzSchema(f *testing.F) {
	for _, seed := range []struct{ schema, value string }{
		{`{"type":"string","default":"registry.k8s.io","example":"x","description":"d"}`, `"x"`}, {`{"type":"string","pattern":"^[a-z]+$","minLength":1,"maxLength":3,"enum":["a","b"]}`, `"é"`},
		{`{"type":"object","properties":{"url":{"type":"string"},"port":{"type":"integer","default":80,"minimum":1,"maximum":65535}},"required":["url"]}`, `{"url":"x","other":1}`},
		{`{"type":"object","additionalProperties":{"type":"object","properties":{"osImage":{"type":"string","default":"ubuntu"}}}}`, `{"a":{},"b":{"osImage":null}}`},
		{`{"type":"array","items":{"type":"string","format":"ipv4"},"uniqueItems":true,"minItems":1,"maxItems":3}`, `["8.8.8.8","8.8.8.8"]`}, {`{"type":"array","items":{"type":"object","properties":{"a":{"type":"boolean","default":true}}}}`, `[{},{"a":false}]`},
		{`{"type":"object"}`, `{"any":{"thing":[1,2.5,null]}}`}, {`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"number"}}}`, `{"a":1,"b":2}`}, {`{"type":"integer","default":9223372036854775807}`, `1e3`},
		{`{"type":"number","exclusiveMinimum":true,"minimum":1}`, `1.0`}, {`{"type":"string","default":1}`, `null`}, {`{"type":"nothing"}`, `{}`}, {`{}`, `1`}, {`{"type":"string","pattern":"("}`, `"x"`}, {`{"type":"string","pattern":"((a{99}){99}){99}"}`, `"x"`},
		{`{"type":"object","default":{},"properties":{"a":{"type":"object","default":{"b":1},"properties":{"b":{"type":"integer"},"c":{"type":"integer","default":3}}}}}`, `{"a":{}}`}, {`{"type":"object","default":{"x":1},"properties":{"a":{"type":"string"}}}`, `{}`},
		{`{"type":"object","properties":{"a":{"type":"string","default":"x"}},"required":["b"],"default":{"a":"y"}}`, `{"b":1}`}, {`{"type":"string","format":"date-time"}`, `"2024-01-01T00:00:00Z"`}, {`{"type":"string","format":"unknown"}`, `"x"`}, {`{"type":"string","enum":["a",1,null]}`, `"a"`},
		{`{"type":"array"}`, `[]`}, {`{"type":"array","items":{"type":"array","items":{"type":"integer"}},"default":[[1],[]]}`, `[[1.5]]`}, {`{"type":"object","properties":{"":{"type":"string"},"a.b":{"type":"string"},"é/[0]":{"type":"string"}}}`, `{"":1,"a.b":2,"é/[0]":3}`},
		{`{"type":"string","example":{"a":1}}`, `"\ud800"`}, {`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string","default":"c"}}}}}`, `{"a":null}`}, {`{"type":"boolean","default":null}`, `true`}, {`{"type":"integer","minimum":5,"maximum":1}`, `12345678901234567890`},
		{`{"type":"object","properties":{"a":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 1","reason":"FieldValueForbidden"}]},"b":{"type":"integer","x-kubernetes-validations":[{"rule":"self < oldSelf"}]}},"x-kubernetes-validations":[{"rule":"self.a < self.b","messageExpression":"'no'","fieldPath":".a"}]}`, `{"a":1,"b":0}`},
		{`{"x-kubernetes-int-or-string":true,"allOf":[{"maximum":10},{"pattern":"^[0-9]+%$"}],"default":"5%"}`, `11`}, {`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"string"}}},"oneOf":[{"required":["a"]},{"properties":{"b":{"items":{"enum":["x"]}}}}],"not":{"required":["c"]},"minProperties":1,"maxProperties":2}`, `{"a":"x","b":["y"]}`},
		{`{"type":"array","items":{"type":"string","x-kubernetes-validations":[{"rule":"self.matches('(')"}]}}`, `["a"]`}, {`{"type":"string","anyOf":[{"anyOf":[{"not":{"allOf":[{"format":"ipv4"}]}}]}],"x-metadata":{"labels":{"a":"b"}}}`, `"1.1.1.1"`},
	} {
		f.Add(seed.schema, seed.value)
	}
	path := field.NewPath("value")
	f.Fuzz(func(t *testing.T, schemaText, text string) {
		var props clusterv1.JSONSchemaProps
		if len(schemaText)+len(text) > 8<<10 || !json.Valid([]byte(text)) || json.Unmarshal([]byte(schemaText), &props) != nil {
			t.Skip("not a request that an API server accepts")
		}
		before := props.DeepCopy()
		errs := validateSchema(t.Context(), &props, path)
		if diff := cmp.Diff(texts(errs), texts(validateSchema(t.Context(), &props, path))); diff != "" {
			t.Errorf("errors of the schema differ (-first +second):\n%s", diff)
		}
		compiled, problems := compile(&props, path)
		if diff := cmp.Diff(before, &props); diff != "" {
			t.Errorf("the schema is changed (-before +after):\n%s", diff)
		}
		if len(problems) > 0 {
			if len(errs) == 0 {
				t.Errorf("admission accepts it, but it does not compile: %v", problems)
			}
			return
		}
		if len(errs) > 0 {
			return // Admission rejects such a class.
		}
		defaulted, err := compiled.defaultValue(nil)
		if err != nil {
			t.Fatalf("default of a missing value: %v", err)
		}
		if defaulted != nil {
			if errs := compiled.validate(t.Context(), defaulted, nil, path); len(errs) > 0 {
				t.Errorf("the default %s is invalid: %v", defaulted.Raw, errs)
			}
		}
		checkValue(t, compiled, &apiextensionsv1.JSON{Raw: []byte(text)}, path)
	})
}

func checkValue(t *testing.T, compiled *schema, value *apiextensionsv1.JSON, path *field.Path) {
	t.Helper()
	text := string(value.Raw)
	wrong := texts(compiled.validate(t.Context(), value, nil, path))
	if diff := cmp.Diff(wrong, texts(compiled.validate(t.Context(), value, nil, path))); diff != "" {
		t.Errorf("errors of the value differ (-first +second):\n%s", diff)
	}
	completed, err := compiled.defaultValue(value)
	if string(value.Raw) != text {
		t.Errorf("value %s was changed to %s", text, value.Raw)
	}
	if err != nil {
		if len(wrong) == 0 {
			t.Errorf("%s is valid, but cannot be defaulted: %v", text, err)
		}
		return
	}
	twice, err := compiled.defaultValue(completed)
	if err != nil || !sameJSON(completed, twice) {
		t.Errorf("%s is defaulted to %s, then to %s, %v", text, completed.Raw, twice.Raw, err)
	}
}
