package difference_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/clusterctl/takeover/difference"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, before, after string
		rewritten             bool
		want                  []difference.Object
	}{
		{reason: "what is not written does not differ", before: `{"a":1}`, after: `{"a":1}`},
		{
			reason: "an object that is written without changes is reported", before: `{"a":1}`, after: `{"a":1}`, rewritten: true,
			want: []difference.Object{{Key: "k", Effect: difference.Changed}},
		},
		{reason: "a created object", after: `{}`, want: []difference.Object{{Key: "k", Effect: difference.Created}}},
		{reason: "a deleted object", before: `{}`, want: []difference.Object{{Key: "k", Effect: difference.Deleted}}},
		{
			reason: "an object whose deletion has begun, whatever else differs", rewritten: true,
			before: `{"metadata":{}}`, after: `{"metadata":{"deletionTimestamp":"now"},"a":1}`,
			want: []difference.Object{{Key: "k", Effect: difference.Deleted}},
		},
		{
			reason: "fields are added, removed and changed", rewritten: true,
			before: `{"spec":{"a":1,"b":[{"name":"x","v":1}]}}`, after: `{"spec":{"b":[{"name":"x","v":2}],"c":{}}}`,
			want: []difference.Object{{Key: "k", Effect: difference.Changed, Fields: []string{"- .spec.a", "~ .spec.b[x].v", "+ .spec.c"}}},
		},
		{
			reason: "generations and times follow from other changes", rewritten: true,
			before: `{"metadata":{"generation":1},"status":{"conditions":[{"type":"Ready","lastTransitionTime":"1"}]}}`,
			after:  `{"metadata":{"generation":2},"status":{"conditions":[{"type":"Ready","lastTransitionTime":"2"}]}}`,
			want:   []difference.Object{{Key: "k", Effect: difference.Changed, Times: true}},
		},
		{
			reason: "managers are named", rewritten: true,
			before: `{"metadata":{"managedFields":[{"manager":"a","operation":"Apply","fieldsV1":{"f:x":{}}},{"manager":"b","operation":"Update"}]}}`,
			after:  `{"metadata":{"managedFields":[{"manager":"a","operation":"Apply","fieldsV1":{"f:y":{}}},{"manager":"b","operation":"Update"}]}}`,
			want:   []difference.Object{{Key: "k", Effect: difference.Changed, Managers: []string{"a Apply "}}},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			before, after := map[string]difference.Stored{}, map[string]difference.Stored{}
			if tc.before != "" {
				before["k"] = difference.Stored{Revision: 1, Content: []byte(tc.before)}
			}
			if tc.after != "" {
				after["k"] = difference.Stored{Revision: 1, Content: []byte(tc.after)}
			}
			if tc.rewritten {
				after["k"] = difference.Stored{Revision: 2, Content: []byte(tc.after)}
			}
			got, err := difference.Compare(before, after, func(content []byte) (map[string]any, error) {
				var parsed map[string]any
				return parsed, json.Unmarshal(content, &parsed)
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
