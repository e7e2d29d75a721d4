package openapi_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/hack/openapi"
)

// root is the root of the repository.
var root = filepath.Join("..", "..")

// TestPublished checks that the documents in release/files are the generated ones.
func TestPublished(t *testing.T) {
	for name, want := range generate(t) {
		got, err := os.ReadFile(filepath.Join(root, "release", "files", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is not up to date, run `make generate` (-generated +published)\n%s", name, diff)
		}
	}
}

func generate(t *testing.T) map[string][]byte {
	t.Helper()
	out, err := openapi.Generate(root)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestOlderDocument compares the document in v1beta1 with the one of Cluster API v1.7, which is not part of this repository and may not
// exist: paths, operations, and the fields of requests and responses with their types.
func TestOlderDocument(t *testing.T) {
	published, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "facts", "data", openapi.File))
	if os.IsNotExist(err) {
		t.Skip("there is no document of Cluster API v1.7")
	}
	if err != nil {
		t.Fatal(err)
	}
	want, got := meaning(t, published), meaning(t, generate(t)[openapi.OlderFile])
	withoutAdditions(want, got, false)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-v1.7 +generated)\n%s", diff)
	}
}

// withoutAdditions removes what objects and variables of v1beta1 have gained since v1.7 or no longer require, which test/compatibility
// compares. Requests and responses themselves have gained one field.
func withoutAdditions(want, got any, inObject bool) {
	wanted, ok := want.(map[string]any)
	actual, both := got.(map[string]any)
	if list, isList := want.([]any); isList {
		others, _ := got.([]any)
		for i := range min(len(list), len(others)) {
			withoutAdditions(list[i], others[i], inObject)
		}
	}
	if !ok || !both {
		return
	}
	// The field of discoveries by which a server requests v1beta2.
	if fields, ok := wanted["properties"].(map[string]any); ok && fields["requestHook"] != nil {
		others, _ := actual["properties"].(map[string]any)
		delete(others, "payloadVersion")
	}
	if fields, ok := wanted["properties"].(map[string]any); ok && inObject {
		others, _ := actual["properties"].(map[string]any)
		maps.DeleteFunc(others, func(name string, _ any) bool { return fields[name] == nil })
		optional := func(name any) bool { return slices.Contains([]any{"host", "port", "type"}, name) }
		for _, schema := range []map[string]any{wanted, actual} {
			if required, ok := schema["required"].([]any); ok {
				schema["required"] = slices.DeleteFunc(required, optional)
			}
			if required, ok := schema["required"].([]any); ok && len(required) == 0 {
				delete(schema, "required")
			}
		}
	}
	for name, value := range wanted {
		withoutAdditions(value, actual[name], inObject || name == "cluster" || name == "variables")
	}
}

// intOrString is the type that is written in several ways.
const intOrString = "IntOrString"

// document is a parsed document.
type document struct {
	t       *testing.T
	schemas map[string]any
	// open are the types that are being expanded.
	open []string
}

func parse(t *testing.T, content []byte) (*document, map[string]any) {
	t.Helper()
	var parsed map[string]any
	if err := yaml.Unmarshal(content, &parsed); err != nil {
		t.Fatal(err)
	}
	return &document{t: t, schemas: parsed["components"].(map[string]any)["schemas"].(map[string]any)}, parsed
}

// meaning returns the operations with their types expanded, without texts.
func meaning(t *testing.T, content []byte) map[string]any {
	t.Helper()
	d, parsed := parse(t, content)
	for name, schema := range d.schemas {
		// Whether a variable is required may be left out here: it is false then.
		if fields, ok := schema.(map[string]any)["required"].([]any); ok && strings.HasSuffix(name, "ClusterClassVariable") {
			schema.(map[string]any)["required"] = slices.DeleteFunc(fields, func(f any) bool { return f == "required" })
		}
	}
	// Patch releases of v1.7 added these fields.
	for kind, field := range map[string]string{"ControlPlaneTopology": "variables", "MachineDeploymentStrategy": "remediation"} {
		for name, schema := range d.schemas {
			if fields, ok := schema.(map[string]any)["properties"].(map[string]any); ok && strings.HasSuffix(name, kind) {
				delete(fields, field)
			}
		}
	}
	out := map[string]any{"openapi": parsed["openapi"]}
	for path, item := range parsed["paths"].(map[string]any) {
		out[path] = d.expand(item)
	}
	return out
}

// expand replaces references, and drops what has no meaning on the wire: texts, names of types, hints for API servers, validation that v1.7
// has only in CustomResourceDefinitions, and defaults, which are Go's zero values.
func (d *document) expand(value any) any {
	switch v := value.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = d.expand(v[i])
		}
		slices.SortFunc(out, func(a, b any) int {
			left, _ := a.(string)
			right, _ := b.(string)
			return strings.Compare(left, right)
		})
		return out
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			return d.refer(strings.TrimPrefix(ref, "#/components/schemas/"))
		}
		if v["x-kubernetes-int-or-string"] == true {
			return intOrString
		}
		out := map[string]any{}
		for name, field := range v {
			if d.means(name, field) {
				out[name] = d.expand(field)
			}
		}
		return out
	}
	return value
}

func (d *document) refer(name string) any {
	short := name[strings.LastIndex(name, ".")+1:]
	if slices.Contains(d.open, name) {
		return "recursion to " + short
	}
	if short == intOrString {
		return short
	}
	found, ok := d.schemas[name]
	if !ok {
		d.t.Fatalf("reference to the unknown type %s", name)
	}
	d.open = append(d.open, name)
	defer func() { d.open = d.open[:len(d.open)-1] }()
	return d.expand(found)
}

// means reports whether a field of the document has a meaning.
func (*document) means(name string, value any) bool {
	switch name {
	case "clusterName": // It is no longer part of Kubernetes' metadata.
		return false
	case "description", "summary": // Texts, but also names of fields.
		_, isText := value.(string)
		return !isText
	case "default":
		_, isField := value.(map[string]any)
		return isField
	case "enum":
		values, isList := value.([]any)
		return !isList || slices.Contains(values, any("Failure")) || slices.Contains(values, any("JSONPatch"))
	case "minLength", "maxLength", "minimum", "maximum", "pattern":
		_, isField := value.(map[string]any)
		return isField
	}
	return !strings.HasPrefix(name, "x-kubernetes-") || name == "x-kubernetes-preserve-unknown-fields" && value == nil
}
