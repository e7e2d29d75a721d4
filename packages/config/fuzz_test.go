package config

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever a configuration file says: it is read the same each time; all providers are valid, each known once and with a URL; what
// it says of variables is found, whatever their case, unless the environment says something else.
func FuzzFile(f *testing.F) {
	for _, text := range []string{
		"providers:\n- {name: mine, type: InfrastructureProvider, url: '/r/infrastructure-mine/latest/c.yaml'}\nAWS_REGION: eu\nreplicas: 3\nfloat: 1.50\nyes: no\nnull: null\n", "providers: {a: b}\n", "providers: [{name: kubeadm, type: BootstrapProvider, url: '${X:=/a}'}]\n", "PROVIDERS: []\nproviders: [null]\n", "cert-manager: {version: v1.0.0, url: '${A}', timeout: 5m}\n",
		"cert-manager: {timeout: 99999999h, version: x}\n", "images: {all: {repository: r}, cert-manager/x: {tag: t}}\n", "images: [a]\n", "overridesFolder: '${HOME}/x'\nOverridesFolder: 1\n", "a-b: c\nA_B: d\n", "- a\n", "a", "", "{", "a: &a [*a]\n", "a: &a x\nb: *a\n", "1: 2\n", "é: 日本\n", "x: \"\\0\"\n",
		"title = 'x'\n[cert-manager]\nversion = 'v1.2.3'\n", "a = 1979-05-27T07:32:00Z\nb = inf\nc = [1, 'x']\n", "a = nan\n", "[[providers]]\nname = 'x'\n",
	} {
		f.Add([]byte(text), ".yaml")
		f.Add([]byte(text), ".toml")
	}
	env := environment(map[string]string{"HOME": "/home/me", "SET": "by the environment"})
	read := func(text []byte, extension string) (*Config, error) {
		c := Default(env)
		parsed, err := parse(text, extension)
		if err == nil {
			err = c.apply(parsed.file, parsed.values)
		}
		return c, err
	}
	f.Fuzz(func(t *testing.T, text []byte, extension string) {
		if len(text) > 16<<10 {
			t.Skip("long")
		}
		c, err := read(text, extension)
		again, errAgain := read(text, extension)
		if (err == nil) != (errAgain == nil) {
			t.Fatalf("%v, then %v", err, errAgain)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff([]any{c.Providers, c.CertManager, c.Images, c.OverridesFolder, c.values}, []any{again.Providers, again.CertManager, again.Images, again.OverridesFolder, again.values}); diff != "" {
			t.Errorf("the second time (-first +second):\n%s", diff)
		}
		var labels []string
		for _, p := range c.Providers {
			if err := p.Validate(); err != nil {
				t.Errorf("%+v: %v", p, err)
			}
			if slices.Contains(labels, p.ManifestLabel()) {
				t.Errorf("%s is known twice", p.ManifestLabel())
			}
			labels = append(labels, p.ManifestLabel())
		}
		for name, value := range c.values {
			if got, ok := c.Variable(name); !ok || name != "SET" && name != "HOME" && got != value {
				t.Errorf("%s is %q, %t instead of %q", name, got, ok, value)
			}
		}
		if got, _ := c.Variable("set"); got != "by the environment" {
			t.Errorf("the environment is overridden by %q", got)
		}
	})
}
