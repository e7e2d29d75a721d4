package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// seen is the result of Read in short.
type seen struct {
	Objects, Problems []string
}

func read(data map[string][]byte) seen {
	var out seen
	objects, problems := Read(data)
	for _, o := range objects {
		out.Objects = append(out.Objects, o.Describe())
	}
	for _, p := range problems {
		out.Problems = append(out.Problems, p.Error())
	}
	return out
}

func object(kind, name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata:\n  name: %q\n", kind, name)
}

// bomb expands to ten million values.
func bomb() string {
	var out strings.Builder
	out.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 7; i++ {
		fmt.Fprintf(&out, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return out.String()
}

func TestRead(t *testing.T) {
	const secret = "hunter2"
	many := strings.Repeat("---\n"+object("ConfigMap", "m"), maxObjects+5)
	for _, tc := range []struct {
		reason string
		data   map[string]string
		want   seen
	}{
		{reason: "nothing", data: map[string]string{}},
		{reason: "keys are sorted", data: map[string]string{"b": object("Pod", "2"), "a": object("Pod", "1")},
			want: seen{Objects: []string{"key a, document 1 (Pod 1)", "key b, document 1 (Pod 2)"}}},
		{reason: "empty documents do not count", data: map[string]string{"a": "---\n# a comment\n---\n" + object("Pod", "1") + "---\n---\nnull\n---\n" + object("Pod", "2") + "---\n"},
			want: seen{Objects: []string{"key a, document 2 (Pod 1)", "key a, document 4 (Pod 2)"}}},
		{reason: "kinds that others depend on come first, in one key",
			data: map[string]string{
				"a": object("Deployment", "d") + "---\n" + object("Widget", "w") + "---\n" + object("ValidatingWebhookConfiguration", "v") + "---\n" +
					object("CustomResourceDefinition", "crd") + "---\n" + object("ServiceAccount", "s") + "---\n" + object("Namespace", "n"),
				"b": object("Namespace", "later"),
			},
			want: seen{Objects: []string{
				"key a, document 6 (Namespace n)", "key a, document 4 (CustomResourceDefinition crd)", "key a, document 5 (ServiceAccount s)",
				"key a, document 1 (Deployment d)", "key a, document 2 (Widget w)", "key a, document 3 (ValidatingWebhookConfiguration v)",
				"key b, document 1 (Namespace later)",
			}}},
		{reason: "JSON, several documents", data: map[string]string{"a": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"1","namespace":"n"}}` + "\n\t" + `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"2"}}`},
			want: seen{Objects: []string{"key a, document 1 (Pod n/1)", "key a, document 2 (Pod 2)"}}},
		{reason: "YAML that looks like JSON", data: map[string]string{"a": `{apiVersion: v1, kind: Pod, metadata: {name: p}}`},
			want: seen{Objects: []string{"key a, document 1 (Pod p)"}}},
		{reason: "a list", data: map[string]string{"a": `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"1"}},{"kind":"Pod"}]}`},
			want: seen{Objects: []string{"key a, document 1, item 1 (Pod 1)"}, Problems: []string{"key a, document 1, item 2: has no valid apiVersion"}}},
		{reason: "a typed list, whose items need no kind", data: map[string]string{"a": `{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"1"}}]}`},
			want: seen{Objects: []string{"key a, document 1, item 1 (Pod 1)"}}},
		{reason: "a kind that ends with List", data: map[string]string{"a": object("AllowList", "l")}, want: seen{Objects: []string{"key a, document 1 (AllowList l)"}}},
		{reason: "nested lists", data: map[string]string{"a": strings.Repeat(`{"apiVersion":"v1","kind":"List","items":[`, 20) + strings.Repeat("]}", 20)},
			want: seen{Problems: []string{"key a, document 1, item 1: has lists in more than 8 lists"}}},
		{reason: "broken documents are named and not quoted, and do not affect others",
			data: map[string]string{"a": object("Pod", "1") + "---\npassword: " + secret + "\nmore: {" + secret + ": [\n---\n" + secret + "\n---\n" + object("Pod", "2") + "---\n" +
				"apiVersion: v1\nkind: [" + secret + "]\n---\napiVersion: a/b/c\nkind: K\nmetadata: {name: n}\n---\napiVersion: v1\nkind: Pod\nmetadata: {generateName: p-}\n"},
			want: seen{
				Objects: []string{"key a, document 1 (Pod 1)", "key a, document 4 (Pod 2)"},
				Problems: []string{
					"key a, document 2: is not valid YAML, at line 2 of the document", "key a, document 3: must be an object with apiVersion and kind",
					"key a, document 5: has no kind", "key a, document 6: has no valid apiVersion",
					"key a, document 7: metadata.name must be a string; metadata.generateName is not supported",
				},
			}},
		{reason: "an alias bomb", data: map[string]string{"a": bomb(), "b": object("Pod", "1")},
			want: seen{Objects: []string{"key b, document 1 (Pod 1)"}, Problems: []string{"key a, document 1: the documents have more than 4194304 bytes with YAML aliases expanded"}}},
		{reason: "many small bombs", data: map[string]string{"a": strings.Repeat("---\na: &a "+strings.Repeat("x", 1<<19)+"\nb: [*a, *a]\n", 3), "b": "a: &a " + strings.Repeat("x", 1<<19) + "\nb: [*a, *a]\n"},
			want: seen{Problems: []string{
				"key a, document 1: has no kind", "key a, document 2: has no kind",
				"key a, document 3: the documents have more than 4194304 bytes with YAML aliases expanded",
				"key b, document 1: the documents have more than 4194304 bytes with YAML aliases expanded",
			}}},
		{reason: "too many objects", data: map[string]string{"a": many},
			want: seen{Problems: []string{"key a, document 2001: there are more than 2000 objects: use several ConfigMaps or Secrets"}}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			data := map[string][]byte{}
			for key, value := range tc.data {
				data[key] = []byte(value)
			}
			got := read(data)
			if len(got.Objects) == maxObjects {
				got.Objects = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, p := range got.Problems {
				if strings.Contains(p, secret) {
					t.Errorf("the problem quotes the document: %s", p)
				}
			}
		})
	}
}

func TestHash(t *testing.T) {
	data := func(all ...string) map[string][]byte {
		out := map[string][]byte{}
		for i := 0; i < len(all); i += 2 {
			out[all[i]] = []byte(all[i+1])
		}
		return out
	}
	// The hash is stored in bindings: if it changed, everything would be applied again after an upgrade.
	const want = "sha256:393ef88353a539fe03e7097e868d3bcb6bf631debb4357f8f38752d3cd5aafb5"
	for range 20 {
		if got := Hash(data("a", "1", "b", "2", "c", "3", "d", "4")); got != want {
			t.Fatalf("hash = %s, want %s", got, want)
		}
	}
	for _, tc := range []struct {
		reason string
		a, b   map[string][]byte
		same   bool
	}{
		{"the order of insertion is irrelevant", data("a", "1", "b", "2"), data("b", "2", "a", "1"), true},
		{"another value", data("a", "1"), data("a", "2"), false},
		{"another key, which may change the order", data("a", "1"), data("b", "1"), false},
		{"text moves between values", data("a", "12", "b", "3"), data("a", "1", "b", "23"), false},
		{"text moves between key and value", data("ab", "c"), data("a", "bc"), false},
		{"an empty value", data("a", "1"), data("a", "1", "b", ""), false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if same := Hash(tc.a) == Hash(tc.b); same != tc.same {
				t.Errorf("same hash: %t, want %t", same, tc.same)
			}
		})
	}
}
