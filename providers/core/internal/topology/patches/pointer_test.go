package patches

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
)

func TestApplyAt(t *testing.T) {
	const document = `{"spec":{"a":{"b":1},"list":[1,2],"files":[{"path":"x"}],"null":null,"slash/tilde~":1,"0":"key"}}`
	tests := []struct {
		reason string
		op     operation
		path   string
		value  string
		want   string
		err    string
	}{
		{reason: "add sets a field", op: add, path: "/spec/a/c", value: `2`,
			want: `{"spec":{"a":{"b":1,"c":2},"list":[1,2],"files":[{"path":"x"}],"null":null,"slash/tilde~":1,"0":"key"}}`},
		{reason: "add replaces a field that exists", op: add, path: "/spec/a", value: `{"x":"y"}`,
			want: `{"spec":{"a":{"x":"y"},"list":[1,2],"files":[{"path":"x"}],"null":null,"slash/tilde~":1,"0":"key"}}`},
		{reason: "add does not create parents", op: add, path: "/spec/x/y/z", value: `2`,
			err: "/spec/x does not exist: add it in an earlier patch, or to the template"},
		{reason: "null cannot be a parent", op: add, path: "/spec/null/y", value: `2`,
			err: "/spec/null does not exist: add it in an earlier patch, or to the template"},
		{reason: "a number cannot be a parent", op: add, path: "/spec/a/b/c", value: `2`, err: "/spec/a/b is a number, which has no fields"},
		{reason: "- appends", op: add, path: "/spec/list/-", value: `3`,
			want: `{"spec":{"a":{"b":1},"list":[1,2,3],"files":[{"path":"x"}],"null":null,"slash/tilde~":1,"0":"key"}}`},
		{reason: "0 inserts at the start", op: add, path: "/spec/list/0", value: `0`,
			want: `{"spec":{"a":{"b":1},"list":[0,1,2],"files":[{"path":"x"}],"null":null,"slash/tilde~":1,"0":"key"}}`},
		{reason: "an index can be at most the length", op: add, path: "/spec/list/3", value: `0`, err: "/spec/list: index 3 is out of range"},
		{reason: "an element can be changed", op: add, path: "/spec/files/0/content", value: `"c"`,
			want: `{"spec":{"a":{"b":1},"list":[1,2],"files":[{"path":"x","content":"c"}],"null":null,"slash/tilde~":1,"0":"key"}}`},
		{reason: "an index cannot have a minus sign", op: remove, path: "/spec/list/-0", err: `/spec/list is an array: "-0" is not a valid index`},
		{reason: "an index cannot have a plus sign", op: replace, path: "/spec/list/+1", value: `0`, err: `/spec/list is an array: "+1" is not a valid index`},
		{reason: "an index cannot have leading zeros", op: add, path: "/spec/list/00", value: `0`, err: `/spec/list is an array: "00" is not a valid index`},
		{reason: "indexes of parents are validated, too", op: add, path: "/spec/files/-0/content", value: `0`, err: `/spec/files is an array: "-0" is not a valid index`},
		{reason: "an array has no named fields", op: add, path: "/spec/list/x", value: `0`, err: `/spec/list is an array: "x" is not a valid index`},
		{reason: "a key can consist of digits", op: replace, path: "/spec/0", value: `1`,
			want: `{"spec":{"a":{"b":1},"list":[1,2],"files":[{"path":"x"}],"null":null,"slash/tilde~":1,"0":1}}`},
		{reason: "~1 is a slash, ~0 a tilde", op: replace, path: "/spec/slash~1tilde~0", value: `2`,
			want: `{"spec":{"a":{"b":1},"list":[1,2],"files":[{"path":"x"}],"null":null,"slash/tilde~":2,"0":"key"}}`},
		{reason: "replace requires its target", op: replace, path: "/spec/x", value: `2`, err: "/spec/x does not exist: op replace requires it"},
		{reason: "remove requires its target", op: remove, path: "/spec/x", err: "/spec/x does not exist: op remove requires it"},
		{reason: "remove removes", op: remove, path: "/spec/a",
			want: `{"spec":{"list":[1,2],"files":[{"path":"x"}],"null":null,"slash/tilde~":1,"0":"key"}}`},
		{reason: "remove removes elements", op: remove, path: "/spec/list/0",
			want: `{"spec":{"a":{"b":1},"list":[2],"files":[{"path":"x"}],"null":null,"slash/tilde~":1,"0":"key"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			var value any
			if tt.value != "" {
				value = mustParse(t, tt.value)
			}
			got, err := applyAt(mustParse(t, document), parsePointer(tt.path), tt.op, value)
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Fatalf("%s: error\n%v\nwant\n%s", tt.reason, err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(mustParse(t, tt.want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// FuzzApplyAt compares applyAt with a JSON patch library: if the library applies an operation, applyAt does so with the same result.
func FuzzApplyAt(f *testing.F) {
	for _, op := range operations {
		for _, path := range []string{"/a/b", "/a/c", "/list/0", "/list/-", "/list/2", "/list/0/x", "/x/y", "/a/b/c", "/a~1b", "/"} {
			f.Add(`{"a":{"b":1},"list":[{"x":1},2],"a/b":null}`, op, path, `{"v":[1]}`)
		}
	}
	f.Fuzz(func(t *testing.T, document, op, path, value string) {
		var tree map[string]any
		if json.Unmarshal([]byte(document), &tree) != nil || tree == nil || !json.Valid([]byte(value)) {
			t.Skip("no JSON object")
		}
		if op != string(add) && op != string(replace) && op != string(remove) || path == "" || path[0] != '/' || !utf8.ValidString(path) {
			t.Skip("not a patch the API takes")
		}
		patch, err := json.Marshal([]map[string]any{{"op": op, "path": path, "value": json.RawMessage(value)}})
		if err != nil {
			t.Skip("path is not UTF-8")
		}
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			t.Skip("not a patch for the library")
		}
		canonical, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		expected, err := operations.Apply(canonical)
		if err != nil {
			return
		}
		got, err := applyAt(mustParse(t, string(canonical)), parsePointer(path), operation(op), mustParse(t, value))
		if err != nil {
			if lenient(path) {
				return
			}
			t.Fatalf("%s %s on %s: %v", op, path, canonical, err)
		}
		if diff := cmp.Diff(mustParse(t, string(expected)), got); diff != "" && !lenient(path) {
			t.Errorf("%s %s on %s (-library +got):\n%s", op, path, canonical, diff)
		}
	})
}

// lenient reports paths that the library takes differently from RFC 6902: negative, signed and padded
// indexes, and the empty key.
func lenient(path string) bool {
	for _, part := range parsePointer(path) {
		if part == "" || len(part) > 1 && (part[0] == '-' || part[0] == '+' || part[0] == '0') {
			return true
		}
	}
	return false
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func mustParse(t testing.TB, encoded string) any {
	t.Helper()
	out, err := parseJSON([]byte(encoded))
	if err != nil {
		t.Fatalf("bad test data: %v: %s", err, encoded)
	}
	return out
}
