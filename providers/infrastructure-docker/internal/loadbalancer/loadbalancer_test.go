package loadbalancer

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/providers/internal/gotemplate"
)

var update = flag.Bool("update", false, "write the golden files")

func TestBuiltIn(t *testing.T) {
	tests := []struct {
		reason, golden string
		in             Config
	}{
		{reason: "a new cluster has no machines", golden: "empty.cfg", in: Config{Port: 6443}},
		{
			reason: "machines are sorted by name, so that the configuration does not change without a reason", golden: "three.cfg",
			in: Config{Port: 8443, Backends: map[string]string{"c-3": "172.18.0.4", "c-1": "172.18.0.9", "c-2": "172.18.0.7"}},
		},
		{
			reason: "IPv6 addresses have brackets", golden: "ipv6.cfg",
			in: Config{Port: 6443, IPv6: true, Backends: map[string]string{"c-1": "fc00::7"}},
		},
	}
	builtIn, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := builtIn.Render(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", tc.golden)
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTemplatesOfUsers(t *testing.T) {
	config := Config{Port: 6443, IPv6: true, Backends: map[string]string{"c-1": "fc00::7", "c-2": "10.0.0.1"}}
	tests := []struct {
		reason, source, want string
		// failure is a part of the error.
		failure string
	}{
		{
			reason: "the variables are fields of the data",
			source: `{{.IPv6}} {{.FrontendControlPlanePort}}{{range $n, $a := .BackendServers}} {{$n}}={{JoinHostPort $a $.BackendControlPlanePort}}{{end}}`,
			want:   "true 6443 c-1=[fc00::7]:6443 c-2=10.0.0.1:6443",
		},
		{
			reason: "the variables can be written as documented, with $",
			source: `{{$IPv6}} {{$FrontendControlPlanePort}}{{range $n, $a := $BackendServers}} {{$n}}={{JoinHostPort $a $BackendControlPlanePort}}{{end}}`,
			want:   "true 6443 c-1=[fc00::7]:6443 c-2=10.0.0.1:6443",
		},
		{reason: "not a template", source: "{{", failure: "not a valid Go template"},
		{reason: "errors refer to the line of the source", source: "a\nb\n{{.Nope}}", failure: "value:3"},
		{reason: "a typo is an error, not <no value>", source: "{{.BackendServer}}", failure: "BackendServer"},
		{reason: "functions that could read files do not exist", source: `{{readFile "/etc/passwd"}}`, failure: "readFile"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			parsed, err := Parse(tc.source)
			var got []byte
			if err == nil {
				got, err = parsed.Render(config)
			}
			if tc.failure != "" {
				if err == nil || !strings.Contains(err.Error(), tc.failure) {
					t.Fatalf("error %v, want one with %q", err, tc.failure)
				}
				return
			}
			if diff := cmp.Diff(tc.want, string(got)); err != nil || diff != "" {
				t.Errorf("error %v, -want +got:\n%s", err, diff)
			}
		})
	}
}

func TestTemplatesAreBounded(t *testing.T) {
	tests := []struct{ reason, source string }{
		{reason: "recursion without end", source: `{{define "a"}}{{template "a" .}}{{end}}{{template "a" .}}`},
		{reason: "nested loops", source: strings.Repeat(`{{range $.BackendServers}}`, 60) + "x" + strings.Repeat(`{{end}}`, 60)},
		{reason: "a huge output", source: `{{range .BackendServers}}{{printf "%200000d" 1}}{{printf "%200000d" 1}}{{end}}`},
		{reason: "a huge source", source: strings.Repeat("a", MaxConfig+1)},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			parsed, err := Parse(tc.source)
			if err == nil {
				_, err = parsed.Render(Config{Backends: map[string]string{"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"}})
			}
			if limit := (*gotemplate.LimitError)(nil); !errors.As(err, &limit) {
				t.Errorf("error %v, want a LimitError", err)
			}
		})
	}
}

func TestAddressesAreChecked(t *testing.T) {
	builtIn, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"", "host", "10.0.0.1\n  server evil 1.2.3.4:1"} {
		if got, err := builtIn.Render(Config{Backends: map[string]string{"a": address}}); err == nil {
			t.Errorf("%q is rendered as\n%s", address, got)
		}
	}
}
