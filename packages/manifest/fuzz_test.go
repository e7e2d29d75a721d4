package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is read is written, and read again as the same objects; each has a kind and an API version.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n", "---\n---\napiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret, data: {a: eA==}}]\n", `{"apiVersion":"v1","kind":"X"}{"apiVersion":"v1","kind":"Y"}`,
		"apiVersion: v1\nkind: X\nn: 1e3\nm: 1.0\no: 12345678901234567890\np: -0\nq: .5\nr: 0x10\ns: 0o7\nt: 1_000\n", "kind: X\n", "apiVersion: v1\n", "# only a comment\n", "null\n---\n~\n", "[]", "apiVersion: v1\nkind: [a]\n", "apiVersion: v1\nkind: ConfigMapList\nitems: 1\n",
		"apiVersion: v1\nkind: X\ndata: |\n  ---\n  x\n", "apiVersion: v1\nkind: X\na: \"x\\u2028\\0\"\nb: 'é日本'\nyes: no\n1: 2\n", "apiVersion: v1\nkind: X\nmetadata: 1\n", "apiVersion: v1\nkind: X\na: &a [*a]\n", "apiVersion: v1\nkind: X\na: &a {b: 1}\nc: {<<: *a}\n", "%YAML 1.1\n---\napiVersion: v1\nkind: X\n",
		"apiVersion: v1\nkind: X\n--- # comment\napiVersion: v1\nkind: Y\n", "apiVersion: v1\r\nkind: X\r\n---\r\nkind: Y\r\n", "apiVersion: v1\nkind: L\nitems: [{}]", "apiVersion: v1\nkind: L\nitems: [null, 1]", "\xff\xfea\x00", "apiVersion: v1\nkind: X\na: !!binary eA==\nb: 2001-01-01\nc: !!set {a}\n", "apiVersion: v1\nkind: X\n? [a, b]\n: c",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 16<<10 {
			t.Skip("long")
		}
		objects, err := Parse(text)
		if err != nil {
			return
		}
		for i := range objects {
			if objects[i].GetAPIVersion() == "" || objects[i].GetKind() == "" {
				t.Errorf("object %d is %v", i, objects[i].Object)
			}
		}
		written, err := Format(objects)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := Parse(written)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, written)
		}
		if diff := cmp.Diff(objects, again); diff != "" && len(objects)+len(again) > 0 {
			t.Errorf("written and read again (-first +second):\n%s\n%s", diff, written)
		}
		SetNamespace(again, "n")
		for i := range again {
			if _, hasMetadata := again[i].Object["metadata"].(map[string]any); hasMetadata && ScopeOf(again).Namespaced(&again[i]) && again[i].GetNamespace() != "n" {
				t.Errorf("object %d is in namespace %q", i, again[i].GetNamespace())
			}
		}
	})
}

// Any YAML can be normalized, and doing it again changes nothing.
func FuzzNormalize(f *testing.F) {
	for _, text := range []string{
		"a: 1\n---\n- b\n---\nc\n", "- [a, {b: c}]\n", "a: &a {b: 1}\nc: {<<: *a}\n", "12345678901234567890\n", "a: 1.0\nb: 1e400\nc: .nan\n", "'--- x'\n", "|\n  ---\n  a\n", "{}\n---\n[]\n", "a: \"\\0\\u2028\"\n", "yes: no\n1: 2\n", "? [a]\n: b\n", "%TAG ! x\n---\na\n", "--- a\n--- b\n", "a\r\n---\r\nb",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 16<<10 {
			t.Skip("long")
		}
		once, err := Normalize(text)
		if err != nil {
			return
		}
		twice, err := Normalize(once)
		if err != nil || string(once) != string(twice) {
			t.Errorf("%q is %q, then %q, %v", text, once, twice, err)
		}
	})
}
