package template

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/drone/envsubst/v2"
)

// Whatever a file says: it is replaced the same each time; what a variable stands for is not looked at again; variables that
// are missing are among those that the file has, none of them has a default, and with values for them nothing is missing. The
// result is that of the library for the whole text.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{
		"plain", "${A}", "${ A }", "${A:=default}", "${A:=\"\"}", "${A:-${B}}", "${A:=${B:=c}}", "$A", "$${A}", "${A", "${", "}", "$", "${}", "${A:+x}", "${A:?x}", "${A=x}", "${#A}", "${A,,}", "${A^^}", "${A^}", "${A:1}", "${A:1:2}", "${A:9:-1}", "${A#x}",
		"${A##*x}", "${A%x}", "${A/x/y}", "${A//x/y}", "${A/#x/y}", "${A-x}", "a: ${A}\nb: ${B:=x}\n", "${1}", "${é}", "\xff${A}", "${A:-}", "${A:=a b}", "${A:=\\}", "${A:=\\}}", "${A:0}", "${ $A }", "${A:=$B}", "{{ .x }} ${A}", "${A//\\//y}", "$$$A", "$${", "${A:-${A:-${A}}}", "${A:-\n${B\n}\n}\n$${A\n}${B}", "${A/}/x}\n${A/\n}/x}", "$\n{A}", "${\nA\n}", "$$${A}\n$$$$", "${A//\\\\/\n}", "${A[0]}", "${A@Q}", "${!A}",
	} {
		f.Add(text, "value")
		f.Add(text, "${A} $${B} é\nx: y")
		f.Add(text, "")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		if len(text)+len(value) > 8<<10 {
			t.Skip("long")
		}
		parsed, err := Parse([]byte(text))
		if err != nil {
			return
		}
		if !strings.Contains(text, "$") {
			if out, err := parsed.Execute(func(string) (string, bool) { return value, true }); err != nil || string(out) != text {
				t.Errorf("without variables %q becomes %q, %v", text, out, err)
			}
		}
		known := map[string]Variable{}
		for _, v := range parsed.Variables() {
			known[v.Name] = v
		}
		given := map[string]bool{}
		get := func(name string) (string, bool) { return map[bool]string{true: value}[given[name]], given[name] }
		for range len(known) + 1 {
			out, err := parsed.Execute(get)
			again, errAgain := parsed.Execute(get)
			if string(out) != string(again) || (err == nil) != (errAgain == nil) {
				t.Fatalf("%q becomes %q, %v, then %q, %v", text, out, err, again, errAgain)
			}
			var missing *MissingError
			if !errors.As(err, &missing) {
				checkWhole(t, text, string(out), err, get)
				return
			}
			if !slices.IsSorted(missing.Names) || len(missing.Names) == 0 {
				t.Fatalf("%q lacks %q", text, missing.Names)
			}
			for _, name := range missing.Names {
				if _, ok := known[name]; !ok || given[name] {
					t.Fatalf("%q lacks %q, its variables are %v", text, name, known)
				}
				given[name] = true
			}
		}
		t.Errorf("%q lacks values when all of %v are given", text, known)
	})
}

// checkWhole compares with the library, which is given the whole text.
func checkWhole(t *testing.T, text, out string, err error, get Lookup) {
	t.Helper()
	if strings.Contains(text, "$${") {
		return // Spaces in escaped braces: they are only removed if the braces are in one line.
	}
	defer func() { _ = recover() }() // The library panics where this package has an error.
	whole, errWhole := envsubst.Eval(spacedBraces.ReplaceAllString(text, "$${$1}"), func(name string) string {
		value, _ := get(name)
		return value
	})
	if err == nil && (errWhole != nil || whole != out) {
		t.Errorf("%q becomes %q, the library makes %q of it, %v", text, out, whole, errWhole)
	}
}

// A value arrives as it is, whatever it looks like.
func FuzzValue(f *testing.F) {
	for _, value := range []string{"", "x", "${A}", "$A", "$$", "$${A}", "}", "é日本\n", "\xff", "\\", "a: b", "\"", "{{ x }}"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, text := range []string{"a: ${A}\n", "a: ${ A }\n", "a: ${A:=default}\n", "a: ${B:-${A}}\n"} {
			parsed, err := Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			out, err := parsed.Execute(func(name string) (string, bool) { return value, name == "A" })
			if want := "a: " + value + "\n"; value != "" && (err != nil || string(out) != want) {
				t.Errorf("%q with %q: %q, %v", text, value, out, err)
			}
		}
	})
}
