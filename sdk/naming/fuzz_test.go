package naming

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Derived names are deterministic and short enough; what derives from a valid name is a valid one, and whatever a name is,
// it has a valid label value.
func FuzzNames(f *testing.F) {
	for _, base := range []string{"demo", "", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a.", 31) + "b", strings.Repeat("a-", 100) + "b", "é日本", "-", "a_b", "A", "\xff", strings.Repeat("a", 57) + "-b", strings.Repeat("a", 253)} {
		f.Add(base, "uid")
	}
	f.Fuzz(func(t *testing.T, base, part string) {
		suffix := Suffix(base, part)
		if suffix != Suffix(base, part) || len(suffix) != suffixLength || len(validation.IsDNS1123Label(suffix)) > 0 {
			t.Errorf("suffix %q", suffix)
		}
		name := WithSuffix(base, suffix)
		if name != WithSuffix(base, suffix) || len(name) > maxLength || !strings.HasSuffix(name, suffix) {
			t.Errorf("name %q", name)
		}
		if len(validation.IsDNS1123Subdomain(base)) == 0 && len(validation.IsDNS1123Subdomain(name)) > 0 {
			t.Errorf("%q is valid, %q is not", base, name)
		}
		if len(validation.IsDNS1123Label(base)) == 0 && len(validation.IsDNS1123Label(name)) > 0 {
			t.Errorf("label %q is valid, %q is not", base, name)
		}
		value := LabelValue(base)
		if len(validation.IsValidLabelValue(value)) > 0 || value != LabelValue(base) {
			t.Errorf("label value %q", value)
		}
		if len(validation.IsValidLabelValue(base)) == 0 && value != base {
			t.Errorf("%q is a label value, but becomes %q", base, value)
		}
	})
}
