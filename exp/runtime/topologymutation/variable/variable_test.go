package variable_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/exp/runtime/topologymutation/variable"
)

func TestGet(t *testing.T) {
	values := map[string]any{
		"dnsServers": []any{"8.8.8.8", "1.1.1.1"},
		"httpProxy":  map[string]any{"url": "http://proxy", "list": []any{[]any{"a", "b"}}},
		"no-proxy":   "x",
		"null":       nil,
		"builtin":    map[string]any{"cluster": map[string]any{"name": "c"}},
	}
	tests := []struct {
		reason, source string
		want           any
		parseErr, err  string
	}{
		{reason: "a whole variable", source: "dnsServers", want: []any{"8.8.8.8", "1.1.1.1"}},
		{reason: "an element", source: "dnsServers[1]", want: "1.1.1.1"},
		{reason: "a field", source: "httpProxy.url", want: "http://proxy"},
		{reason: "elements of elements", source: "httpProxy.list[0][1]", want: "b"},
		{reason: "a dash is part of a name", source: "no-proxy", want: "x"},
		{reason: "null is a value", source: "null", want: nil},
		{reason: "builtin variables", source: "builtin.cluster.name", want: "c"},
		{reason: "no such variable", source: "foo", err: `variable "foo" is not set`},
		{reason: "no such field", source: "httpProxy.noProxy", err: `variable "httpProxy.noProxy" is not set`},
		{reason: "no such element", source: "dnsServers[2]", err: `variable "dnsServers[2]" is not set`},
		{reason: "a list has no fields", source: "dnsServers.a", err: `variable "dnsServers.a" is not set`},
		{reason: "a bracket has to close", source: "dnsServers[0", parseErr: `"dnsServers[0": "]" is missing after "dnsServers[0"`},
		{reason: "an index is a number", source: "dnsServers[a]", parseErr: `"dnsServers[a]": "a" is not an index`},
		{reason: "an index is not negative", source: "dnsServers[-1]", parseErr: `"dnsServers[-1]": "-1" is not an index`},
		{reason: "names must not be empty", source: "a..b", parseErr: `"a..b" contains an empty name`},
		{reason: "a reference must not be empty", source: "", parseErr: `"" contains an empty name`},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			l, err := variable.Parse(tt.source)
			if message(err) != tt.parseErr {
				t.Fatalf("%s: parsing: %q, want %q", tt.reason, message(err), tt.parseErr)
			}
			if err != nil {
				return
			}
			got, err := l.Get(values)
			if message(err) != tt.err {
				t.Fatalf("%s: %q, want %q", tt.reason, message(err), tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
