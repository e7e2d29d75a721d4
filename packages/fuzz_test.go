package packages

import (
	"strings"
	"testing"
)

// A reference is read as it is written, and names a provider that could be.
func FuzzRef(f *testing.F) {
	for _, s := range []string{"aws", "aws:v2.4.0", "aws:2.4.0-rc.1+b", " AWS ", "a:b:c", "a.b-c:v1.0.0", ":", "", "a:", "é", "../x:v1.0.0", "a:v1.0.0/../..", "a:v01.0.0", "a:vv1.0.0", "a: v1.0.0", strings.Repeat("a", 300)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := ParseRef(s)
		if err != nil {
			return
		}
		if strings.ContainsAny(ref.Name+ref.Version, "/\\ \n\x00") || ref.Name == "" {
			t.Errorf("%q is %+v, which is part of paths", s, ref)
		}
		if again, err := ParseRef(ref.String()); err != nil || again != ref {
			t.Errorf("%q is %+v, written and read %+v, %v", s, ref, again, err)
		}
	})
}
