package gotemplate

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzExecute checks that executing any template stays within its budget and is deterministic.
func FuzzExecute(f *testing.F) {
	for _, source := range []string{
		`{{ .cluster.name }}-{{ .random }}`, `{{ range .list }}{{ . }},{{ else }}none{{ end }}`, `{{ range $i, $e := .list }}{{ $i }}{{ end }}`,
		`{{ if eq .cluster.name "c" }}true{{ end }}`, `{{ define "x" }}{{ template "x" . }}{{ end }}{{ template "x" . }}`, `{{ range 100000 }}x{{ end }}`,
		`{{ repeat 1000000 "x" }}`, `{{ repeat 100 (repeat 100 (repeat 100 "x")) }}`, `{{ printf "%1000000d" 1 }}`, `{{ printf "%*d" 999999 1 }}`, `{{ until 1000000 | toJson }}`,
		`{{ untilStep 0 1000 -1 }}`, `{{ seq 1 1 9999999 }}`, `{{ regexMatch "(a|b)*c" .text }}`, `{{ regexReplaceAll "(.)" .text "$1$1$1" }}`, `{{ indent 1000 .text }}`,
		`{{ toPrettyJson .list }}`, `{{ fromJson .text }}`, `{{ dict "a" (dict "b" .list) | toYaml }}`, `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d }}`, `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toJson $d }}`,
		`{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ deepCopy $d }}`, `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ merge $d $d }}`, `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ deepEqual $d $d }}`,
		`{{ (index .list 0).name }}`, `{{ index .list 99 }}`, `{{ slice .text 1 2 }}`, `{{ slice .text 5 1 }}`, `{{ b64dec .text }}`, `{{ semver "1.2.3" }}`, `{{ semverCompare "^1" .cluster.name }}`,
		`{{ substr 2 1 .text }}`, `{{ trunc -5 .text }}`, `{{ abbrev 3 .text }}`, `{{ abbrevboth 5 10 .text }}`, `{{ nospace .text }}`, `{{ initials .text }}`, `{{ wrap 0 .text }}`, `{{ wrapWith 1 "\t" .text }}`,
		`{{ splitn "" 5 .text }}`, `{{ chunk 0 .list }}`, `{{ slice .list 9 }}`, `{{ first .empty }}`, `{{ rest .empty }}`, `{{ initial .empty }}`, `{{ max 1 2 "a" }}`, `{{ div 1 0 }}`, `{{ mod 1 0 }}`,
		`{{ add 9223372036854775807 1 }}`, `{{ round 1.5 400 }}`, `{{ atoi "é" }}`, `{{ toDecimal "0777" }}`, `{{ date "2006" 0 }}`, `{{ duration "95" }}`, `{{ htmlDate 0 }}`, `{{ urlParse "a://b:c" }}`, `{{ urlJoin (dict "host" "h") }}`,
		`{{ derivePassword 1 "long" "p" "u" "s" }}`, `{{ sha256sum .text }}`, `{{ bcrypt "x" }}`, `{{ cat 1 2 nil }}`, `{{ ternary 1 2 true }}`, `{{ coalesce nil 1 }}`, `{{ default 1 nil }}`, `{{ dig "a" "b" 1 (dict) }}`,
		`{{ pluck "a" (dict "a" 1) }}`, `{{ pick (dict) "a" }}`, `{{ omit (dict) "a" }}`, `{{ unset (dict) "a" }}`, `{{ values (dict) }}`, `{{ append .list 1 }}`, `{{ concat .list .list }}`, `{{ has 1 .list }}`, `{{ sortAlpha .list }}`,
		`{{ js .text }}{{ html .text }}{{ urlquery .text }}`, `{{ len 3 }}`, `{{ call .text }}`, `{{ . }}`, `{{ $ }}`, `{{/* c */}}`, `{{- "é日本" -}}`, `{{ break }}`, `{{ with .cluster }}{{ .name }}{{ end }}`, "{{ `\xff` }}",
		`{{ block "a" . }}{{ end }}`, `{{ while }}`, `{{ eq .list 1.0 }}{{ lt 1 2.5 .text }}{{ has 2.0 .list }}{{ without .list 2.0 nil }}`, `{{ printf "%.3f %d %*d %[1]c" 2 3.0 4 5 }}`, `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ has $d (list $d) }}`, `{{ range $k, $v := .cluster }}{{ $k }}{{ end }}`, `{{ fail .text }}`, `{{ replace "" .text .text }}`, `{{ camelcase .text }}{{ snakecase .text }}{{ kebabcase .text }}{{ swapcase .text }}{{ title .text }}{{ plural "a" "b" 2 }}`,
	} {
		f.Add(source, "some text\nof two lines é", true)
		f.Add(source, `{"a": [1, {"b": null}]}`, false)
	}
	const output, work = 1 << 12, 1 << 16
	f.Fuzz(func(t *testing.T, source, text string, strict bool) {
		if len(source)+len(text) > 16<<10 {
			t.Skip("long")
		}
		parsed, err := NewParser(Options{Name: "t", Sprig: true, Strict: strict, Output: output, Work: work}).Parse(source)
		if err != nil {
			return
		}
		data := func() any {
			return map[string]any{
				"cluster": map[string]any{"name": "c"}, "random": "bcdfg", "text": text, "empty": []any{}, "nothing": nil,
				"list": []any{map[string]any{"name": text}, int64(2), "é"},
			}
		}
		shared := NewBudget(10 * work)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out, err := parsed.Execute(data(), shared)
		runtime.ReadMemStats(&after)
		if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 256 {
			t.Fatalf("%q allocated %d MiB", source, allocated)
		}
		if len(out) > output {
			t.Errorf("%q renders %d bytes", source, len(out))
		}
		if spent := 10*work - shared.left; spent < 0 || spent > work {
			t.Errorf("%q spent %d of the shared budget; its own budget is %d", source, spent, work)
		}
		if err != nil && len(err.Error()) > maxError+10 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
		if err != nil && utf8.ValidString(source+text) && !utf8.ValidString(err.Error()) {
			t.Errorf("%q: the error is not valid UTF-8: %q", source, err)
		}
		again, errAgain := parsed.Execute(data(), nil)
		if string(again) != string(out) || (err == nil) != (errAgain == nil) {
			t.Errorf("%q renders %q, %v at first, then %q, %v", source, out, err, again, errAgain)
		}
		var limit *LimitError
		if errors.As(err, &limit) && strings.TrimSpace(limit.What) == "" {
			t.Errorf("%q: a LimitError without a message", source)
		}
	})
}
