package naming

import "testing"

func TestParseService(t *testing.T) {
	for host, want := range map[string]string{
		"s.n.svc": "n/s", "s.n.svc.": "n/s", "s.n.svc.cluster.local": "n/s", "s.n.svc.cluster.local.": "n/s",
		"s.n": "", "svc": "", "a.s.n.svc": "", ".n.svc": "", "s..svc": "", "s.n.svc.example.com": "", "10.0.0.1": "", "": "",
	} {
		got := ""
		if service, ok := ParseService(host); ok {
			got = service.String()
		}
		if got != want {
			t.Errorf("%q is Service %q, want %q", host, got, want)
		}
	}
}
