package webhooks

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Whatever object a user sends: with the defaults carried over it is the object that was defaulted, doing so again changes
// nothing, and unknown fields are kept.
func FuzzCarryOver(f *testing.F) {
	for _, text := range []string{
		`{"metadata":{"name":"m","namespace":"ns"},"spec":{"clusterName":"c","unknown":[1,{"a":null}]}}`, `{"metadata":{"labels":{"cluster.x-k8s.io/cluster-name":"c"}},"spec":{"clusterName":"c"}}`, `{"spec":{}}`, `{}`, `{"metadata":null,"spec":null}`, `{"metadata":{"labels":null},"spec":{"clusterName":"é\u2028"}}`,
		`{"metadata":{"labels":{"a":"b"},"finalizers":[]},"spec":{"bootstrap":{"configRef":{}},"nodeDrainTimeout":"0s","version":null}}`, `{"unknown":{"deep":{"null":null}},"spec":{"clusterName":"c","infrastructureRef":{"kind":"K"}},"status":{"conditions":[]}}`, `{"metadata":{"creationTimestamp":null,"generation":1e2}}`, `{"spec":{"providerID":"x","providerID":"y"}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var before clusterv1.Machine
		var keys map[string]any
		if len(raw) > 16<<10 || json.Unmarshal(raw, &keys) != nil || keys == nil || json.Unmarshal(raw, &before) != nil {
			t.Skip("no request that an API server sends")
		}
		var sorted clusterv1.Machine // keys that differ only in case lead to another object if their order changes
		if again, err := json.Marshal(keys); err != nil || json.Unmarshal(again, &sorted) != nil || !cmp.Equal(before, sorted, cmpopts.EquateEmpty()) {
			t.Skip("no request that an API server sends")
		}
		encoded, err := json.Marshal(&before)
		if err != nil {
			t.Skip("cannot be encoded")
		}
		wanted := before.DeepCopy()
		if err := (labeling{}).Default(t.Context(), wanted); err != nil {
			t.Fatal(err)
		}
		defaulted, err := carryOver(raw, encoded, wanted)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		var got clusterv1.Machine
		if err := json.Unmarshal(defaulted, &got); err != nil {
			t.Fatalf("%s becomes %s: %v", raw, defaulted, err)
		}
		if diff := cmp.Diff(wanted, &got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s becomes %s (-wanted +got):\n%s", raw, defaulted, diff)
		}
		var after map[string]any
		if err := json.Unmarshal(defaulted, &after); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(keys["unknown"], after["unknown"]); diff != "" {
			t.Errorf("unknown fields changed (-before +after):\n%s", diff)
		}
		again, err := json.Marshal(wanted)
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := carryOver(defaulted, again, wanted); err != nil || string(twice) != string(defaulted) {
			t.Errorf("%s becomes %s, %v", defaulted, twice, err)
		}
	})
}
