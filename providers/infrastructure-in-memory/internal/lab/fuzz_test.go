package lab

import "testing"

// FuzzParsePorts checks that a range is in order and unprivileged, and that ParsePorts reverses String.
func FuzzParsePorts(f *testing.F) {
	for _, text := range []string{"20000-24000", "24000-20000", "1-2", "-", "", "20000", "20000-99999", "+20000-24000", "-20000--24000", "020000-24000", "20000-24000-1", "é-1", "99999999999999999999-1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePorts(text)
		if err != nil {
			return
		}
		if p.First < 1024 || p.Last > 65535 || p.First > p.Last || !p.contains(p.First) || !p.contains(p.Last) || p.contains(p.First-1) || p.contains(p.Last+1) {
			t.Errorf("%q is parsed as %+v", text, p)
		}
		if again, err := ParsePorts(p.String()); err != nil || again != p {
			t.Errorf("%q is %+v, read again %+v, %v", text, p, again, err)
		}
	})
}
