package expansion

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestCheck(t *testing.T) {
	laughs := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range byte(7) {
		name, last := string('b'+i), string('a'+i)
		laughs += name + ": &" + name + " [" + strings.Repeat("*"+last+", ", 10) + "]\n"
	}
	tests := []struct {
		reason string
		text   string
		limit  int
		big    bool
		bad    bool
	}{
		{reason: "text without aliases may be of any size", text: strings.Repeat("a", 1000), limit: 10},
		{reason: "and does not have to be YAML", text: "{ & [", limit: 10},
		{reason: "aliases are fine as long as they are small", text: "a: &a x\nb: *a\n", limit: 100},
		{reason: "text with both characters must be YAML", text: "& * [", limit: 100, bad: true},
		{reason: "both characters may mean something else", text: "a: 'b & c'\nb: 'c * d'\n", limit: 100},
		{reason: "a long text that is repeated", text: "a: &a " + strings.Repeat("x", 1000) + "\nb: [" + strings.Repeat("*a, ", 1000) + "]\n", limit: 100_000, big: true},
		{reason: "lists of lists of lists", text: laughs, limit: 1 << 20, big: true},
		{reason: "a list that contains itself", text: "a: &a [*a]\n", limit: 1 << 30, big: true},
		{reason: "keys count", text: "a: &a " + strings.Repeat("x", 100) + "\n? *a\n: b\n", limit: 150, big: true},
		{reason: "merged maps count", text: "a: &a {k: " + strings.Repeat("x", 100) + "}\nb: {<<: *a}\n", limit: 150, big: true},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			err := Check([]byte(tt.text), tt.limit)
			var tooBig *TooBigError
			if big := errors.As(err, &tooBig); big != tt.big || (err != nil && !big) != tt.bad {
				t.Errorf("%s: %v", tt.reason, err)
			}
		})
	}
}

// What passes is no bigger as JSON than the limit allows: six bytes for each byte of a text, for "\u0000", and some for what
// is around it.
func FuzzCheck(f *testing.F) {
	for _, text := range []string{
		"a: &a x\nb: *a\n", "a: &a [*a]", "a: &a {b: c}\nd: {<<: *a, e: f}\n", "? &a {b: c}\n: *a\n", "&a a: *a", "- &a\n- *a\n", "[&a a, *a, &a b, *a]",
		"a: &a \"\\0\\x01é\u2028\"\nb: [*a, *a, *a]", "--- &a\n- *a\n---\n*b\n", "&a !!binary eA==: *a", "{&a : *a}", "a: &a 1e999\nb: *a\n", "x: &a ~\n? *a\n: *a",
		"a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\nd: [*c, *c, *c]\n", "a: &日本 é\nb: *日本", "<<: [&a {a: b}, *a, *a]",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		const limit = 4 << 10
		if len(text) > limit {
			t.Skip("long without aliases")
		}
		if Check(text, limit) != nil {
			return
		}
		asJSON, err := yaml.YAMLToJSON(text)
		if err != nil {
			return
		}
		if !json.Valid(asJSON) {
			t.Errorf("%q becomes %q, which is not JSON", text, asJSON)
		}
		if len(asJSON) > 16*limit {
			t.Errorf("%q becomes %d bytes", text, len(asJSON))
		}
	})
}
