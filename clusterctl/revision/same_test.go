package revision

import "testing"

func TestDifference(t *testing.T) {
	for _, tc := range []struct{ reason, file, stored, live, want string }{
		{"the same", `{spec: {a: [1, {b: c}]}}`, `{spec: {a: [1, {b: c}]}}`, `{spec: {a: [1, {b: c}]}}`, ""},
		{"defaults of then and of now", `{spec: {a: {}}}`, `{spec: {a: {now: 1}, both: 2}}`, `{spec: {a: {then: 1}, both: 1}, status: {}}`, ""},
		{"defaults in a list", `{spec: {a: [{b: 1}]}}`, `{spec: {a: [{b: 1, now: 1}]}}`, `{spec: {a: [{b: 1}]}}`, ""},
		{"another notation", `{spec: {a: 300s}}`, `{spec: {a: 5m0s}}`, `{spec: {a: 5m0s}}`, ""},
		{"a field that is not stored", `{spec: {a: null, b: {c: 1}}}`, `{spec: {}}`, `{spec: {}}`, ""},
		{"another value", `{spec: {a: {b: 1}}}`, `{spec: {a: {b: 1}}}`, `{spec: {a: {b: 2}}}`, "spec.a.b"},
		{"a field that is gone", `{spec: {a: {b: 1}}}`, `{spec: {a: {b: 1}}}`, `{spec: {}}`, "spec.a"},
		{"an item more", `{spec: {a: [1]}}`, `{spec: {a: [1]}}`, `{spec: {a: [1, 2]}}`, "spec.a"},
		{"an item changed", `{spec: {a: [1, {b: 2}]}}`, `{spec: {a: [1, {b: 2}]}}`, `{spec: {a: [1, {b: 3}]}}`, "spec.a[1].b"},
		{"a label", `{metadata: {labels: {a: b}}}`, `{metadata: {labels: {a: b}}}`, `{metadata: {labels: {c: d}}}`, "metadata.labels.a"},
		{"labels and annotations of others", `{metadata: {labels: {a: b}}}`, `{metadata: {labels: {a: b}}}`,
			`{metadata: {labels: {a: b, c: d}, annotations: {e: f}, uid: u}}`, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			objects := parse(t, typed(tc.file)+"\n---\n"+typed(tc.stored)+"\n---\n"+typed(tc.live))
			if got := Difference(objects[0], objects[1], objects[2]); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func typed(text string) string { return "{apiVersion: a/v1, kind: B, " + text[1:] }
