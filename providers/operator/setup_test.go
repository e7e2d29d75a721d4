package operator

import (
	"testing"

	"github.com/go-logr/logr"

	"sigs.k8s.io/cluster-api/sdk/version"
)

func TestGoProxy(t *testing.T) {
	for list, want := range map[string]string{
		"": version.GoProxy(), "https://proxy.example,direct": "https://proxy.example", "off": "", "direct": "", "file:///modules": "",
	} {
		if got := goProxy(func(string) string { return list }, logr.Discard()); got != want {
			t.Errorf("GOPROXY=%q: got %q, want %q", list, got, want)
		}
	}
}
