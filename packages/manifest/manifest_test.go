package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/packages"
)

func TestParseAndFormat(t *testing.T) {
	tests := map[string]struct{ reason, in, want, err string }{
		"Documents": {
			reason: "Empty documents are dropped, keys sorted, integers stay integers.",
			in:     "# only a comment\n---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\ndata: {num: 1, f: 1.5}\n---\n---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: b\n",
			want:   "apiVersion: v1\ndata:\n  f: 1.5\n  num: 1\nkind: ConfigMap\nmetadata:\n  name: a\n---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: b\n",
		},
		"List": {
			reason: "A list is replaced by its items.",
			in:     "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n",
			want:   "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n",
		},
		"ItemWithoutKind":    {reason: "Items of a list are objects, too.", in: "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: X}, {}]\n", err: "document 1: item 2 of the List: not a Kubernetes object: it has no kind"},
		"ItemWithoutVersion": {reason: "An item needs a version.", in: "apiVersion: v1\nkind: List\nitems: [{kind: X}]\n", err: "item 1 of the List: X  has no apiVersion"},
		"Aliases":            {reason: "A document stays as small as it is.", in: "apiVersion: v1\nkind: X\nx: &a " + strings.Repeat("x", 100_000) + "\ny: [" + strings.Repeat("*a, ", 2000) + "]\n", err: "aliases expand to more than"},
		"Empty":              {reason: "An empty file has no objects."},
		"NotYAML":            {reason: "The error has the document's number.", in: "a: 1\nkind: X\napiVersion: v1\n---\na: [", err: "document 2: invalid YAML"},
		"NoKind":             {reason: "Other values are rejected.", in: "a: 1\n", err: "document 1: not a Kubernetes object: it has no kind"},
		"Text":               {reason: "A string is not an object.", in: "hello\n", err: "document 1: not a Kubernetes object"},
		"NoAPIVersion":       {reason: "An object needs a version.", in: "kind: X\nmetadata: {name: yy}\n", err: "X yy has no apiVersion"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := Parse([]byte(tc.in))
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("%s\nParse(): want error %q, got: %v", tc.reason, tc.err, err)
			}
			got, err := Format(objects)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s\nFormat(Parse()): -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSetNamespace(t *testing.T) {
	objects, err := Parse([]byte(`
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ids.x.io}, spec: {group: x.io, scope: Cluster, names: {kind: Identity}}}
---
{apiVersion: x.io/v1, kind: Identity, metadata: {name: id}}
---
{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: c, namespace: other}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}}
`))
	if err != nil {
		t.Fatal(err)
	}
	SetNamespace(objects, "ns")
	var got []string
	for i := range objects {
		got = append(got, Describe(&objects[i]))
	}
	want := []string{"CustomResourceDefinition ids.x.io", "Identity id", "Cluster ns/c", "ClusterRole r"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds a CRD of the same file makes cluster wide, and built-in ones, get no namespace: -want +got:\n%s", diff)
	}
}

func TestNormalize(t *testing.T) {
	for _, tc := range []struct{ reason, in, want string }{
		{"a map without kind", "name: x\nb: 1 # comment\na: true\n", "a: true\nb: 1\nname: x\n"},
		{"a kind without version", "kind: X\na: bar\n", "a: bar\nkind: X\n"},
		{"a list", "- a: 1\n- b\n", "- a: 1\n- b\n"},
		{"scalars", "hello\n---\n1\n---\n", "hello\n---\n1\n"},
		{"a List stays one", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: X}]\n", "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: X\nkind: List\n"},
		{"large numbers", "a: 12345678901234567890\nb: 1.5\n", "a: 12345678901234567890\nb: 1.5\n"},
		{"nothing", "# nothing\n---\n", ""},
	} {
		got, err := Normalize([]byte(tc.in))
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: %q, %v", tc.reason, got, err)
		}
	}
	if _, err := Normalize([]byte("a: 1\n---\na: [")); err == nil || !strings.Contains(err.Error(), "document 2") {
		t.Errorf("what is no YAML: %v", err)
	}
}

func TestParseTemplate(t *testing.T) {
	objects, err := ParseTemplate([]byte("a: 1\n---\nkind: X\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n"))
	if err != nil {
		t.Fatal(err)
	}
	SetNamespace(objects, "n")
	got, err := Format(objects)
	if err != nil {
		t.Fatal(err)
	}
	want := "a: 1\n---\nkind: X\nmetadata:\n  namespace: \"n\"\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\n  namespace: \"n\"\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := CheckTypes(objects); err == nil || !strings.Contains(err.Error(), "object 1: not a Kubernetes object") {
		t.Errorf("error is %v", err)
	}
}

func TestLastLineIsNotLost(t *testing.T) {
	const begin = "apiVersion: v1\nkind: X\n---\n"
	last := `{"apiVersion": "v1", "kind": "Y", "x": "`
	last += strings.Repeat("x", 8192-len(last)-2) + `"}`
	if objects, err := Parse([]byte(begin + last)); err != nil || len(objects) != 2 {
		t.Errorf("%d objects, %v", len(objects), err)
	}
}

// Files are written by others: whatever they have, the answer is an error, and the time bounded.
func TestLimits(t *testing.T) {
	aliases := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		aliases += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	for name, text := range map[string]string{
		"Large": strings.Repeat("a: b\n", packages.MaxManifests), "Aliases": aliases, "Circle": "a: &a [*a]\n",
		"DeepFlow": strings.Repeat("[", 1<<20), "DeepMaps": strings.Repeat("{a: ", 1<<20), "DeepBlock": strings.Repeat("- ", 1<<20), "DeepKeys": strings.Repeat("? ", 1<<20),
	} {
		if _, err := Parse([]byte(text)); err == nil || len(err.Error()) > 1000 {
			t.Errorf("%s: error is %v", name, err)
		}
		if err := Check([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
