package webhooks

import (
	"encoding/json"
	"testing"
)

// Only what changes is written, also in the items of lists.
func TestCarryOver(t *testing.T) {
	for _, tc := range []struct{ reason, raw, before, after, want string }{
		{"a field of an item", `{"l":[{"a":"60s","x":{}},{"a":"60s"}]}`, `{"l":[{"a":"1m"},{"a":"1m"}]}`, `{"l":[{"a":"1m"},{"a":"1m","b":1}]}`, `{"l":[{"a":"60s","x":{}},{"a":"60s","b":1}]}`},
		{"an added item", `{"l":[{"a":"60s"}]}`, `{"l":[{"a":"1m"}]}`, `{"l":[{"a":"1m"},{"a":"2m"}]}`, `{"l":[{"a":"60s"},{"a":"2m"}]}`},
		{"a new list", `{"x":1}`, `{}`, `{"l":[1,2]}`, `{"l":[1,2],"x":1}`},
		{"a list that is filled", `{"l":[]}`, `{"l":[]}`, `{"l":[1]}`, `{"l":[1]}`},
		{"an item that is no object", `{"l":[1,2]}`, `{"l":[1,2]}`, `{"l":[1,3]}`, `{"l":[1,3]}`},
		{"a list in a list", `{"l":[[{"x":1}]]}`, `{"l":[[{}]]}`, `{"l":[[{"a":1}]]}`, `{"l":[[{"a":1,"x":1}]]}`},
		{"a removed item replaces the list", `{"l":[{"a":"60s"},{"a":"2m"}]}`, `{"l":[{"a":"1m"},{"a":"2m"}]}`, `{"l":[{"a":"2m"}]}`, `{"l":[{"a":"2m"}]}`},
		{"a list of which the type does not have all items", `{"l":[null,{"a":1}]}`, `{"l":[{"a":1}]}`, `{"l":[{"a":1,"b":2}]}`, `{"l":[{"a":1,"b":2}]}`},
		{"nothing", `{"l":[{"a":"60s"}]}`, `{"l":[{"a":"1m"}]}`, `{"l":[{"a":"1m"}]}`, `{"l":[{"a":"60s"}]}`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := carryOver([]byte(tc.raw), []byte(tc.before), json.RawMessage(tc.after))
			if err != nil || string(got) != tc.want {
				t.Errorf("%s, %v; want %s", got, err, tc.want)
			}
		})
	}
}
