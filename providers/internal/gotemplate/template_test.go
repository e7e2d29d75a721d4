package gotemplate

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func generous() Options { return Options{Sprig: true, Output: 1 << 20, Work: 16 << 20} }

func values() map[string]any {
	return map[string]any{
		"name": "demo", "count": int64(3), "half": 0.5, "million": int64(1000000), "large": int64(9007199254740993), "numbers": []any{int64(1), 2.5, int64(1000000)}, "zones": []any{"a", "b", "c"}, "empty": []any{},
		"object": map[string]any{"z": "last", "a": "first", "nested": map[string]any{"deep": true}},
	}
}

func TestUsefulTemplates(t *testing.T) {
	for _, tc := range []struct{ reason, source, want string }{
		{"a condition", `{{ if and .name (eq .count 3) }}true{{ end }}`, "true"},
		{"an undefined variable is false", `{{ if .missing }}true{{ else }}false{{ end }}`, "false"},
		{"an undefined variable renders as no value", `{{ .missing }}`, "<no value>"},
		{"a loop over a list", `{{ range $i, $z := .zones }}{{ $i }}{{ $z }} {{ end }}`, "0a 1b 2c "},
		{"a loop over a map, sorted", `{{ range $k, $v := .object }}{{ $k }} {{ end }}`, "a nested z "},
		{"a loop over a number", `{{ range $i := 3 }}{{ $i }}{{ end }}`, "012"},
		{"a loop over nothing", `{{ range .empty }}x{{ else }}none{{ end }}{{ range .missing }}x{{ else }}none{{ end }}`, "nonenone"},
		{"a loop with a break", `{{ range .zones }}{{ if eq . "b" }}{{ break }}{{ end }}{{ . }}{{ end }}`, "a"},
		{"a loop over the result of a function", `{{ range $z := .zones | reverse }}{{ $z }}{{ end }}`, "cba"},
		{"with and variables", `{{ with $o := .object }}{{ $o.nested.deep }}{{ end }}{{ $x := "a" }}{{ $x = "b" }}{{ $x }}`, "trueb"},
		{"defined templates", `{{ define "greet" }}hello {{ . }}{{ end }}{{ template "greet" .name }}, {{ block "bye" .count }}{{ . }}{{ end }}`, "hello demo, 3"},
		{"recursive templates that end", `{{ define "down" }}{{ . }}{{ if gt . 0 }}{{ template "down" (int (sub . 1)) }}{{ end }}{{ end }}{{ template "down" 5 }}`, "543210"},
		{"indentation", `{{ "a\nb" | nindent 2 }}`, "\n  a\n  b"},
		{"numbers", `{{ add 1 .count }} {{ until 3 | join "," }} {{ seq 1 3 }} {{ printf "%05d %s %-6s|" 42 .name "x" }}`, "4 0,1,2 1 2 3 00042 demo x     |"},
		{"numbers compared with both kinds of literals", `{{ eq .count 3 }} {{ eq .count 3.0 }} {{ ne 3.0 .count }} {{ eq .count 1 2.5 3.0 }} {{ lt .count 3.5 }} {{ le .count 3.0 }} {{ gt .half 0 }} {{ ge .half .count }}`, "true true false true true true true false"},
		{"large numbers are compared exactly, and remain readable", `{{ eq .large 9007199254740992.0 }} {{ gt .large 9007199254740992.0 }} {{ .large }} {{ .million }}`, "false true 9007199254740993 1000000"},
		{"numbers of a function's result", `{{ eq (len .zones) .count }} {{ eq (len .zones) 3.0 }} {{ eq (div .count 2) 1 }} {{ lt (divf .count 2) 2 }}`, "true true true true"},
		{"numbers formatted by both kinds of verbs", `{{ printf "%.0f|%d|%5.1f|%v|%s|%x|%*d" .count .count .count .million .name .count 4 .count }}`, "3|3|  3.0|1000000|demo|3|   3"},
		{"types, as they are", `{{ printf "%T %T" .count 3.5 }}`, "int64 float64"},
		{"a whole literal formatted as an integer", `{{ printf "%d%%" 3.0 }} {{ printf "%d" 3.5 }}`, "3% %!d(float64=3.5)"},
		{"numbers in lists", `{{ has 1 .numbers }} {{ has 1.0 .numbers }} {{ has 2.5 .numbers }} {{ has "1" .numbers }} {{ without .numbers 1.0 1000000 }} {{ deepEqual .numbers (list 1.0 2.5 1000000) }}`, "true true true false [2.5] true"},
		{"what is not set equals nothing", `{{ eq .missing "x" }} {{ ne .missing 3 }} {{ eq .missing .none }} {{ has 1 .missing }}`, "false true true false"},
		{"texts", `{{ .name | upper | repeat 2 | quote }} {{ replace "m" "nn" .name }} {{ trunc 2 .name }} {{ default "x" .missing }}`, `"DEMODEMO" denno de x`},
		{"lists", `{{ has "b" .zones }} {{ without .zones "a" }} {{ uniq (list 1 1 2) }} {{ len .zones }} {{ index .zones 1 }} {{ first .zones }}`, "true [b c] [1 2] 3 b a"},
		{"maps", `{{ $d := dict "k" "v" }}{{ set $d "n" 1 | toJson }} {{ get .object "a" }} {{ hasKey $d "k" }} {{ dig "nested" "deep" "no" .object }}`, `{"k":"v","n":1} first true true`},
		{"versions", `{{ semverCompare ">=1.27" "v1.30.1" }} {{ (semver "1.2.3").Minor }}`, "true 2"},
		{"regular expressions", `{{ regexMatch "^v[0-9]+$" "v12" }} {{ regexReplaceAll "(a+)" "baab" "<${1}>" }} {{ regexFindAll "." "abc" 2 }}`, "true b<aa>b [a b]"},
		{"encodings", `{{ "x" | b64enc }} {{ .object | toPrettyJson | len }} {{ fromJson "[1]" }} {{ html "<" }} {{ sha256sum "" | trunc 8 }}`, "eA== 69 [1] &lt; e3b0c442"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			parsed, err := NewParser(generous()).Parse(tc.source)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // executing must not modify the template
				got, err := parsed.Execute(values(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, string(got)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
}

// bombs returns templates that would use gigabytes or never end.
func bombs() map[string]string {
	doubling := strings.Repeat(`{{ $x = printf "%s%s" $x $x }}`, 60)
	return map[string]string{
		"repeat":                       `{{ repeat 2000000000 "x" }}`,
		"repeat in a condition":        `{{ if repeat 2000000000 "x" | eq "" }}true{{ end }}`,
		"repeat of repeat":             `{{ repeat 100000 (repeat 100000 "x") | len }}`,
		"until":                        `{{ until 1000000000 | len }}`,
		"untilStep that overflows":     `{{ untilStep 0 9223372036854775807 9223372036854775806 | len }}`,
		"seq":                          `{{ seq 1 1000000000 | len }}`,
		"padding":                      `{{ printf "` + strings.Repeat("%999999d", 2000) + `" 1 | len }}`,
		"padding by an argument":       `{{ printf "` + strings.Repeat("%[1]*[1]d", 2000) + `" 999999 | len }}`,
		"a repeated argument":          `{{ $x := repeat 1000000 "x" }}{{ printf "` + strings.Repeat("%[1]s", 20000) + `" $x | len }}`,
		"doubling":                     `{{ $x := "xxxxxxxx" }}` + doubling,
		"doubling in a loop":           `{{ $x := "x" }}{{ range until 100 }}{{ $x = print $x $x }}{{ end }}`,
		"indent":                       `{{ indent 1000000 (repeat 100000 "\n") | len }}`,
		"nindent":                      `{{ nindent 1000000000 "x" | len }}`,
		"replace nothing":              `{{ $x := repeat 1000000 "x" }}{{ replace "" $x $x | len }}`,
		"regular replacement":          `{{ $x := repeat 1000000 "x" }}{{ regexReplaceAll "x" $x $x | len }}`,
		"references in replacements":   `{{ $x := repeat 1000000 "x" }}{{ regexReplaceAll ".*" $x (repeat 10000 "$0") | len }}`,
		"a large expression":           `{{ regexMatch "` + strings.Repeat("x{1000}", 30) + `" "a" }}`,
		"a slow expression":            `{{ regexMatch "(x{0,900})*y$" (repeat 1000000 "x") }}`,
		"join":                         `{{ join (repeat 1000000 "x") (until 100000) | len }}`,
		"wrapWith":                     `{{ $x := repeat 1000000 "x" }}{{ wrapWith 1 $x $x | len }}`,
		"split":                        `{{ split "" (repeat 7000000 "x") | len }}`,
		"pretty nested lists":          `{{ $x := list }}{{ range until 900 }}{{ $x = list $x }}{{ end }}{{ $y := list }}{{ range until 900 }}{{ $y = append $y $x }}{{ end }}{{ toPrettyJson $y | len }}`,
		"repeated nested lists":        `{{ $x := list 1 }}{{ range until 64 }}{{ $x = list $x $x }}{{ end }}{{ toJson $x | len }}`,
		"a map that contains itself":   `{{ $d := dict }}{{ $e := set $d "d" $d }}{{ toJson $d }}`,
		"uniq":                         `{{ until 500000 | uniq | len }}`,
		"endless loop":                 `{{ range 9000000000000000000 }}{{ end }}`,
		"nested loops":                 `{{ range until 50000 }}{{ range until 50000 }}{{ range until 50000 }}{{ end }}{{ end }}{{ end }}`,
		"nested loops over data":       `{{ range .many }}{{ range $.many }}{{ range $.many }}{{ end }}{{ end }}{{ end }}`,
		"a map sorted repeatedly":      `{{ range until 100000 }}{{ range $.wide }}{{ break }}{{ end }}{{ end }}`,
		"a recursive template":         `{{ define "x" }}{{ template "x" }}{{ end }}{{ template "x" }}`,
		"mutually recursive templates": `{{ define "x" }}{{ template "y" }}{{ end }}{{ define "y" }}{{ template "x" }}{{ end }}{{ template "x" }}`,
		"a tree of templates":          tree(40),
		"large output":                 `{{ range until 100000 }}` + strings.Repeat("x", 1000) + `{{ end }}`,
		"passwords":                    `{{ range until 1000 }}{{ derivePassword 1 "long" "password" "user" "example.com" | len }}{{ end }}`,
		"large comparisons":            `{{ range until 1000000 }}{{ if deepEqual $.many $.many }}{{ end }}{{ end }}`,
	}
}

// tree returns templates that each call the next one twice.
func tree(depth int) string {
	var out strings.Builder
	for i := range depth {
		fmt.Fprintf(&out, `{{ define "t%d" }}{{ template "t%d" }}{{ template "t%d" }}{{ end }}`, i, i+1, i+1)
	}
	fmt.Fprintf(&out, `{{ define "t%d" }}{{ end }}{{ template "t0" }}`, depth)
	return out.String()
}

func TestBombsExceedTheirBudget(t *testing.T) {
	data := values()
	many, wide := make([]any, 100_000), map[string]any{}
	for i := range many {
		many[i], wide[fmt.Sprint(i)] = int64(i), true
	}
	data["many"], data["wide"] = many, wide
	for name, source := range bombs() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			parsed, err := NewParser(generous()).Parse(source)
			if err == nil {
				_, err = parsed.Execute(data, nil)
			}
			runtime.ReadMemStats(&after)
			if _, ok := errors.AsType[*LimitError](err); !ok {
				t.Errorf("error is %v, want a LimitError", err)
			}
			if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 512 {
				t.Errorf("allocated %d MiB", allocated)
			}
		})
	}
}

func TestExecutionsShareABudget(t *testing.T) {
	parsed, err := NewParser(generous()).Parse(`{{ until 100000 | len }}`)
	if err != nil {
		t.Fatal(err)
	}
	shared := NewBudget(5_000_000)
	for i := range 10 {
		if _, err := parsed.Execute(nil, shared); err != nil {
			if i < 1 {
				t.Errorf("the first execution fails: %v", err)
			}
			return
		}
	}
	t.Error("ten executions stay within a budget for a few")
}

func TestSourcesAndErrorsAreLimited(t *testing.T) {
	p := NewParser(generous())
	for _, tc := range []struct{ reason, source string }{
		{"a long source", strings.Repeat("x", maxSource+1)},
		{"many actions", strings.Repeat("{{ 1 }}", maxActions+1)},
		{"deeply nested parentheses", "{{ " + strings.Repeat("(", 100_000) + "1" + strings.Repeat(")", 100_000) + " }}"},
		{"deeply nested actions", strings.Repeat("{{if 1}}", maxActions) + strings.Repeat("{{end}}", maxActions)},
	} {
		if _, err := p.Parse(tc.source); err == nil {
			t.Errorf("%s is accepted", tc.reason)
		}
	}
	parsed, err := p.Parse(`{{ fail (repeat 100000 "x") }}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parsed.Execute(nil, nil); err == nil || len(err.Error()) > maxError+10 {
		t.Errorf("the error has %d bytes", len(fmt.Sprint(err)))
	}
}

func TestComparisonsThatFail(t *testing.T) {
	for source, want := range map[string]string{
		`{{ eq .count "3" }}`:      "incompatible types for comparison",
		`{{ lt .name 3 }}`:         "incompatible types for comparison",
		`{{ lt .missing 3 }}`:      "incompatible types for comparison",
		`{{ eq .count }}`:          "missing argument for comparison",
		`{{ eq .object .object }}`: "non-comparable type",
		`{{ has 1 "text" }}`:       "a list is needed, not a string",
		`{{ without .object 1 }}`:  "a list is needed, not a map",
	} {
		parsed, err := NewParser(generous()).Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parsed.Execute(values(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", source, err, want)
		}
	}
}

func TestNondeterministicFunctionsAreUndefined(t *testing.T) {
	p := NewParser(generous())
	for _, name := range append(nondeterministic(), "env", "expandenv", "getHostByName", "now", "randAlphaNum", "uuidv4", chargeFunction, enterFunction, leaveFunction, rangeFunction) {
		if _, err := p.Parse("{{ " + name + " }}"); err == nil || !strings.Contains(err.Error(), "not defined") {
			t.Errorf("%s: %v, want that it is not defined", name, err)
		}
	}
}

func TestStrictTemplates(t *testing.T) {
	parsed, err := NewParser(Options{Strict: true, Output: 100, Work: 1000}).Parse(`{{ .missing }}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parsed.Execute(map[string]any{}, nil); err == nil || !strings.Contains(err.Error(), `no entry for key "missing"`) {
		t.Errorf("err = %v", err)
	}
}
