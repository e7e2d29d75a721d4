package step

import (
	"encoding/json"
	"reflect"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// cases of the difference between two JSON objects; want is empty where they are equal.
var differences = []struct{ reason, from, to, want string }{
	{"equal objects need no patch", `{"a":{"b":[1,{"c":null}]}}`, `{"a":{"b":[1,{"c":null}]}}`, `{}`},
	{"a value is replaced, others are not mentioned", `{"a":1,"b":2}`, `{"a":1,"b":3}`, `{"b":3}`},
	{"null removes", `{"a":1,"b":{"c":2,"d":3}}`, `{"b":{"d":3}}`, `{"a":null,"b":{"c":null}}`},
	{"what is null is as good as absent", `{"a":null}`, `{}`, `{}`},
	{"and absent as good as null", `{}`, `{"a":null}`, `{}`},
	{"a list is replaced as a whole", `{"a":[1,2]}`, `{"a":[1]}`, `{"a":[1]}`},
	{"objects differ by their fields", `{"a":{"b":1,"c":{"d":2}}}`, `{"a":{"b":1,"c":{"d":3}}}`, `{"a":{"c":{"d":3}}}`},
	{"an empty object is not absent", `{}`, `{"a":{}}`, `{"a":{}}`},
	{"an empty list is not absent", `{"a":[]}`, `{}`, `{"a":null}`},
	{"a value becomes an object", `{"a":1}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
	{"an object becomes a value", `{"a":{"b":1}}`, `{"a":1}`, `{"a":1}`},
	{"numbers keep their type", `{"a":1}`, `{"a":1.5}`, `{"a":1.5}`},
}

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Skip("not a JSON object")
	}
	return object
}

func TestDifference(t *testing.T) {
	for _, tc := range differences {
		t.Run(tc.reason, func(t *testing.T) {
			if got := difference(parsed(t, tc.from), parsed(t, tc.to)); !reflect.DeepEqual(map[string]any(got), parsed(t, tc.want)) {
				t.Errorf("from %s to %s: %v, want %s", tc.from, tc.to, got, tc.want)
			}
		})
	}
}

func TestZerosOfTheFirstStatus(t *testing.T) {
	none, first := &clusterv1beta1.MachineDeployment{}, &clusterv1beta1.MachineDeployment{}
	first.Status.ObservedGeneration = 1
	written := &clusterv1beta1.MachineDeployment{Status: clusterv1beta1.MachineDeploymentStatus{ObservedGeneration: 1, Replicas: 1}}
	for _, tc := range []struct {
		reason        string
		before, after *clusterv1beta1.MachineDeployment
		zeros         bool
	}{
		{"a first status of a kind without pointers has unavailableReplicas 0, which no later patch would contain", none, first, true},
		{"an existing status is patched alone", first, written, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			patch, err := statusDifference(tc.before, tc.after)
			if err != nil {
				t.Fatal(err)
			}
			if err := patch.addZeros(tc.before, tc.after); err != nil {
				t.Fatal(err)
			}
			if _, ok := patch.status()["unavailableReplicas"]; ok != tc.zeros {
				t.Errorf("the patch is %v", patch)
			}
		})
	}
}

// What a library does with a difference is what was meant, and nothing is left to do afterwards.
func FuzzDifference(f *testing.F) {
	for _, tc := range differences {
		f.Add(tc.from, tc.to)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		from, to := parsed(t, a), parsed(t, b)
		patch, err := json.Marshal(difference(from, to))
		if err != nil {
			t.Fatal(err)
		}
		original, err := json.Marshal(from)
		if err != nil {
			t.Fatal(err)
		}
		patched, err := jsonpatch.MergePatch(original, patch)
		if err != nil {
			t.Fatal(err)
		}
		if left := difference(parsed(t, string(patched)), withoutNulls(to)); len(left) > 0 {
			t.Errorf("from %s to %s: after the patch %s, %v is left", a, b, patch, left)
		}
	})
}

// withoutNulls is an object without the fields that are null, which a merge patch cannot set.
func withoutNulls(object map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range object {
		if nested, ok := value.(map[string]any); ok {
			out[key] = withoutNulls(nested)
		} else if value != nil {
			out[key] = value
		}
	}
	return out
}
