package template

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/packages"
)

func lookup(values map[string]string) Lookup {
	return func(name string) (string, bool) {
		v, ok := values[name]
		return v, ok
	}
}

func TestExecute(t *testing.T) {
	values := map[string]string{"V": "hello.world", "EMPTY": "", "PATTERN": "a-b-c"}
	tests := map[string]struct {
		reason  string
		in      string
		want    string
		missing []string
	}{
		"Plain":             {reason: "A set variable is replaced.", in: "a: ${V}", want: "a: hello.world"},
		"Spaces":            {reason: "Spaces within the braces are ignored.", in: "a: ${ V }", want: "a: hello.world"},
		"SetEmpty":          {reason: "An empty value counts as set.", in: "a: ${EMPTY}", want: "a: "},
		"Missing":           {reason: "All variables without a value are listed, sorted, once.", in: "${Z} ${A} ${A}", missing: []string{"A", "Z"}},
		"DefaultUnset":      {reason: "Every default form applies to an unset variable.", in: "${N:=d} ${N=d} ${N:-d}", want: "d d d"},
		"DefaultOther":      {reason: "So do the forms that shells use for errors and alternatives.", in: "${N:?d} ${N:+d} ${EMPTY:?d} ${V:?d} ${V:+d}", want: "d d d hello.world hello.world"},
		"DefaultEmpty":      {reason: "Every default form applies to an empty variable.", in: "${EMPTY:=d} ${EMPTY=d} ${EMPTY:-d}", want: "d d d"},
		"DefaultSet":        {reason: "A value wins over a default.", in: "${V:=d} ${V=d} ${V:-d}", want: "hello.world hello.world hello.world"},
		"EmptyDefault":      {reason: "The default may be empty.", in: "[${N:=}]", want: "[]"},
		"JSONDefault":       {reason: "Quotes and brackets in defaults survive.", in: `x: ${N:=["10.0.0.0/12"]}`, want: `x: ["10.0.0.0/12"]`},
		"Nested":            {reason: "A default may be an expression.", in: "${N:=${M:=x}}", want: "x"},
		"NestedNotNeeded":   {reason: "A variable in an unused default needs no value.", in: "${V:=${M}}", want: "hello.world"},
		"NestedNeeded":      {reason: "So does one in a used default: it is empty.", in: "[${N:=${M}}] [${N:-a${M}b}]", want: "[] [ab]"},
		"FirstDecides":      {reason: "A default at the first occurrence makes later ones optional.", in: "${N:=d} [${N}]", want: "d []"},
		"FirstDecidesOther": {reason: "No default at the first occurrence makes the variable required.", in: "${N} ${N:=d}", missing: []string{"N"}},
		"Case":              {reason: "Case is changed for the first letter or all.", in: "${V^} ${V^^} ${V,} ${V,,}", want: "Hello.world HELLO.WORLD hello.world hello.world"},
		"Length":            {reason: "The length is counted.", in: "${#V}", want: "11"},
		"Substring":         {reason: "A part is taken by position and length.", in: "${V:6} ${V:0:5}", want: "world hello"},
		"Trim":              {reason: "Prefixes and suffixes are trimmed by pattern.", in: "${PATTERN#*-} ${PATTERN##*-} ${PATTERN%-*} ${PATTERN%%-*}", want: "b-c c a-b a"},
		"Replace":           {reason: "Text is replaced once, everywhere, at the start or the end.", in: "${PATTERN/-/_} ${PATTERN//-/_} ${PATTERN/#a/x} ${PATTERN/%c/x}", want: "a_b-c a_b_c x-b-c a-b-x"},
		"Escaped":           {reason: "A doubled dollar is a literal one.", in: "$${V} $$", want: "${V} $"},
		"NoBraces":          {reason: "A dollar without braces is left alone.", in: "$V $1", want: "$V $1"},
		"EmptyText":         {reason: "Nothing stays nothing.", in: "", want: ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tmpl, err := Parse([]byte(tc.in))
			if err != nil {
				t.Fatalf("%s\nParse(): %v", tc.reason, err)
			}
			got, err := tmpl.Execute(lookup(values))
			if missing, ok := errors.AsType[*MissingError](err); ok {
				if diff := cmp.Diff(tc.missing, missing.Names); diff != "" {
					t.Errorf("%s\nmissing: -want +got:\n%s", tc.reason, diff)
				}
				return
			}
			if err != nil || tc.missing != nil {
				t.Fatalf("%s\nExecute(): want missing %v, got error: %v", tc.reason, tc.missing, err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s\nExecute(): -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestVariables(t *testing.T) {
	str := func(s string) *string { return &s }
	tmpl, err := Parse([]byte("b: ${B}\na: ${A:=1}\nb: ${B:=2}\nc: ${C:=${D}-x}\nd: ${E^^}"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Variable{
		{Name: "A", Default: str("1")}, {Name: "B"}, {Name: "C", Default: str("${D}-x")}, {Name: "D", Default: str("")}, {Name: "E"},
	}
	if diff := cmp.Diff(want, tmpl.Variables()); diff != "" {
		t.Errorf("Variables(): -want +got:\n%s", diff)
	}
}

func TestParseNamesTheLine(t *testing.T) {
	for _, in := range []string{"a: 1\nb: ${V-d}\n", "a: 1\nb: ${V\n", "a: 1\nb: ${}\n", "a: 1\nb: ${V+d}"} {
		_, err := Parse([]byte(in))
		if err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("Parse(%q): want an error naming line 2, got: %v", in, err)
		}
	}
}

func TestMissingErrorSaysWhatToDo(t *testing.T) {
	got := (&MissingError{Names: []string{"A", "B"}}).Error()
	want := "no value for required variables A, B: set them in the environment or in the clusterctl configuration file"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTextAfterNULIsNotLost(t *testing.T) {
	if _, err := Parse([]byte("a: 1\x00\nb: 2\n")); err == nil || !strings.Contains(err.Error(), "NUL") {
		t.Errorf("error is %v", err)
	}
}

// Shells accept these forms, which have no colon.
func TestFormsThatAreNotSupported(t *testing.T) {
	for _, text := range []string{"${V-d}", "${V+d}", "${V"} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

func TestPartsThatAreNotThere(t *testing.T) {
	for _, text := range []string{"${V:9:-1}", "${V:-9:1}", "${V:1:-5}", "${V: -1}"} {
		tmpl, err := Parse([]byte(text))
		if err != nil {
			continue
		}
		if out, err := tmpl.Execute(lookup(map[string]string{"V": "hello.world"})); err == nil && len(out) > len("hello.world") {
			t.Errorf("%s is %q", text, out)
		}
	}
	tmpl, err := Parse([]byte("${V:9:-1}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tmpl.Execute(lookup(map[string]string{"V": "hello.world"})); err == nil || !strings.Contains(err.Error(), "${NAME:position:length}") {
		t.Errorf("a negative length: %v", err)
	}
}

// The forms that require a variable are those without an argument, as in Cluster API v1.7.
func TestWhichFormsRequireAVariable(t *testing.T) {
	for _, tc := range []struct {
		text     string
		required bool
	}{
		{"${A}", true}, {"${ A }", true}, {"${A^^}", true}, {"${A,,}", true}, {"${A^}", true}, {"${A,}", true}, {"${#A}", true},
		{"${A/x/y}", false}, {"${A//x/y}", false}, {"${A/#x/y}", false}, {"${A/%x/y}", false}, {"${A/x/}", false}, {"${A/#arn/role: \"arn}", false},
		{"${A#x}", false}, {"${A##x}", false}, {"${A%x}", false}, {"${A%%x}", false}, {"${A%.*}", false},
		{"${A:0:1}", false}, {"${A:1}", false}, {"${A:0:${#B}}", false},
		{"${A:-${B}}", false}, {"${A:=${B}}", false}, {"${A=${B^^}}", false}, {"${A:-${B:-${C}}}", false}, {"${A:=}", false}, {"${A=}", false},
		{"${A/x/y} ${A}", false}, {"${A} ${A/x/y}", true}, {"${B:-${A}} ${A}", true}, {"${A:-${A}}", false},
	} {
		parsed, err := Parse([]byte("[" + tc.text + "]"))
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		out, err := parsed.Execute(lookup(nil))
		var missing *MissingError
		if errors.As(err, &missing) != tc.required || !tc.required && strings.Trim(string(out), "[] ") != "" {
			t.Errorf("%s without values is %q, %v; required: %t", tc.text, out, err, tc.required)
		}
		for _, v := range parsed.Variables() {
			if (v.Default == nil) != (tc.required && v.Name == "A") {
				t.Errorf("%s: variable %s has default %v", tc.text, v.Name, v.Default)
			}
		}
	}
}

// Templates are written by others: whatever they have, the work is bounded, and the answer is an error.
func TestLimits(t *testing.T) {
	nested := func(levels int) string {
		return "a: " + strings.Repeat("${a:-", levels) + "x" + strings.Repeat("}", levels)
	}
	for name, text := range map[string]string{
		"Nested":               nested(packages.MaxNesting + 1),
		"DeeplyNested":         nested(20_000),
		"NestedInSeveralLines": strings.Repeat("${a:-\n", 20_000) + strings.Repeat("}\n", 20_000),
		"NestedPatterns":       strings.Repeat("${a/}/", 9_000) + strings.Repeat("}", 9_000),
		"NestedWithoutEnd":     strings.Repeat("${a:-", 2_000_000),
		"ManyInOneLine":        strings.Repeat("${a:-}", 2_000_000),
		"EscapedInOneLine":     strings.Repeat("$$", 2_000_000),
		"EscapedBackslashes":   "${a/" + strings.Repeat(`\\`, 2_000_000) + "/x}",
		"Large":                strings.Repeat("x", packages.MaxManifests+1),
		"MalformedThenLong":    "${a-b}\n" + strings.Repeat("}\n", 1_000_000),
		"ReplaceAll":           "${V//a/" + strings.Repeat("x", 1<<20) + "}",
		"ReplaceNothing":       "${V///" + strings.Repeat("x", 1<<20) + "}",
		"ManyReplaced":         strings.Repeat("${V//a/"+strings.Repeat("x", 1<<10)+"}\n", 1<<12),
		"Patterns":             strings.Repeat("${V##"+strings.Repeat("*a", 1<<10)+"b}\n", 1<<10),
	} {
		t.Run(name, func(t *testing.T) {
			tmpl, err := Parse([]byte(text))
			if err == nil {
				_, err = tmpl.Execute(lookup(map[string]string{"V": strings.Repeat("a", 4096)}))
			}
			if err == nil || len(err.Error()) > 1000 {
				t.Errorf("error is %v", err)
			}
		})
	}
	for name, text := range map[string]string{
		"Nested": nested(packages.MaxNesting), "ManyLines": strings.Repeat("a: ${a:-x} $$x\n", 50_000),
		"SeveralLines": "a: ${a:-\n{b: {}\n}\n}\n${b:=x\n}", "Trimmed": "${V%a*}", "Pattern": "${V/a/}",
	} {
		tmpl, err := Parse([]byte(text))
		if err == nil {
			_, err = tmpl.Execute(lookup(map[string]string{"V": strings.Repeat("a", 4096)}))
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
