package loadbalancer

import (
	"testing"
	"unicode/utf8"
)

// FuzzTemplate checks that no template of a user costs more than its budget, and that errors fit into conditions.
func FuzzTemplate(f *testing.F) {
	f.Add("{{range $n, $a := .BackendServers}}server {{$n}} {{JoinHostPort $a $BackendControlPlanePort}}\n{{end}}")
	f.Add(`{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`)
	f.Add(`{{printf "%1000000000d" 1}}`)
	f.Add("{{$IPv6")
	f.Fuzz(func(t *testing.T, source string) {
		parsed, err := Parse(source)
		var got []byte
		if err == nil {
			got, err = parsed.Render(Config{Port: 1, Backends: map[string]string{"a": "10.0.0.1", "b": "::1"}})
		}
		if err != nil && (len(err.Error()) > 2<<10 || !utf8.ValidString(err.Error()) && utf8.ValidString(source)) {
			t.Errorf("error of %d bytes: %v", len(err.Error()), err)
		}
		if len(got) > MaxConfig {
			t.Errorf("a configuration of %d bytes", len(got))
		}
	})
}
