package expansion

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

// FuzzRegexpSize checks that exactly the valid expressions have a size, within the limit, and that repeating an expression does not reduce it.
func FuzzRegexpSize(f *testing.F) {
	for _, source := range []string{
		"", "a", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "(a|b)*", "a{1000}", "(a{30}){30}", "((a{9}){9}){9}", "(?i)é日本", "[^\\x00-\\x{10FFFF}]", "\\pL+", "(", "a**", "x{2,1}", "\\Q...\\E",
		"(?P<name>a)", "\xff", "[[:alpha:]]", "(?s).{500}", "(((((((((a{2}){2}){2}){2}){2}){2}){2}){2}){2})", "a{1001}", "\\C", "(?U)a+?", "(|){1000}",
	} {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		size, err := RegexpSize(source)
		var tooBig *RegexpTooBigError
		if errors.As(err, &tooBig) {
			return
		}
		compiled, invalid := regexp.Compile(source)
		if (err == nil) != (invalid == nil) {
			t.Fatalf("%q: size %v, compiled %v", source, err, invalid)
		}
		if err != nil {
			return
		}
		if size < 1 || size > MaxRegexp {
			t.Errorf("%q has size %d", source, size)
		}
		text := strings.Repeat("ab0 é", 100)
		_ = compiled.MatchString(text)
		if twice, err := RegexpSize("(?:" + source + "){2}"); err == nil && twice < size && !errors.As(err, &tooBig) {
			t.Errorf("%q has size %d, twice that %d", source, size, twice)
		}
	})
}
