package config

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/template"
)

func environment(values map[string]string) template.Lookup {
	return func(name string) (string, bool) {
		v, ok := values[name]
		return v, ok
	}
}

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	base := Default(environment(map[string]string{"XDG_CONFIG_HOME": "/xdg"}))
	with := func(change func(*Config)) *Config {
		c := *base
		change(&c)
		return &c
	}
	providers := func(extra ...packages.Provider) []packages.Provider {
		var list []packages.Provider
		for _, p := range base.Providers {
			replaced := false
			for _, e := range extra {
				replaced = replaced || e.ManifestLabel() == p.ManifestLabel()
			}
			if !replaced {
				list = append(list, p)
			}
		}
		list = append(list, extra...)
		packages.Sort(list)
		return list
	}
	tests := map[string]struct {
		reason, file, content string
		want                  *Config
		err                   string
	}{
		"Empty": {reason: "An empty file leaves the defaults.", want: base},
		"Providers": {
			reason: "An entry replaces the default of the same name and type, others are added; variables in URLs are replaced.",
			content: `
providers:
- {name: aws, type: InfrastructureProvider, url: "${HOME}/repo/infrastructure-aws/latest/f.yaml"}
- {name: mine, type: IPAMProvider, url: "https://gitlab.x/y"}
`,
			want: with(func(c *Config) {
				c.Providers = providers(
					packages.Provider{Name: "aws", Type: clusterctlv1.InfrastructureProviderType, URL: "/home/me/repo/infrastructure-aws/latest/f.yaml"},
					packages.Provider{Name: "mine", Type: clusterctlv1.IPAMProviderType, URL: "https://gitlab.x/y"})
			}),
		},
		"Everything": {
			reason: "Every key with a meaning is read.",
			content: `
cert-manager: {version: v1.11.1, timeout: 15m}
images:
  all: {repository: myorg.io/local}
  infrastructure-aws/manager: {tag: v2}
overridesFolder: ${HOME}/over
`,
			want: with(func(c *Config) {
				c.CertManager = CertManager{URL: "https://github.com/cert-manager/cert-manager/releases/v1.11.1/cert-manager.yaml", Version: "v1.11.1", Timeout: 15 * time.Minute}
				c.Images = components.ImageOverrides{"all": {Repository: "myorg.io/local"}, "infrastructure-aws/manager": {Tag: "v2"}}
				c.OverridesFolder = "/home/me/over"
			}),
		},
		"BadTimeout": {reason: "An invalid timeout means the default.", content: "cert-manager: {timeout: soon, url: /x/f.yaml}", want: with(func(c *Config) { c.CertManager.URL = "/x/f.yaml" })},
		"TOML":       {reason: "Other formats are detected by extension.", file: "c.toml", content: "overridesFolder = \"/o\"\n", want: with(func(c *Config) { c.OverridesFolder = "/o" })},
		"JSON":       {reason: "JSON is YAML.", file: "c.json", content: `{"OVERRIDESFOLDER": "/o"}`, want: with(func(c *Config) { c.OverridesFolder = "/o" })},
		"NotYAML":    {reason: "The error names the file.", content: "a: [", err: "c.yaml: "},
		"NotAMap":    {reason: "A list is not a valid configuration.", content: "- a", err: "it must be a map of keys and values"},
		"BadShape":   {reason: "The error names the key.", content: "providers: {a: b}", err: "providers must be a list, but is of type object"},
		"BadField":   {reason: "The error names the field.", content: "cert-manager: {version: 1.14}", err: "cert-manager.version must be a string, but is of type number"},
		"NoName":     {reason: "The error names entry and field.", content: "providers: [{type: CoreProvider, url: x}]", err: "providers[0]: name is empty"},
		"BadType":    {reason: "The known types are listed.", content: "providers: [{name: x, type: Infra, url: x}]", err: `providers[0].type of "x": "Infra" is not a provider type: use one of [CoreProvider`},
		"NoURL":      {reason: "A provider must have a URL.", content: "providers: [{name: x, type: AddonProvider}]", err: `providers[0].url of "x" is empty`},
		"URLUnset":   {reason: "The error names an unset variable in a URL.", content: "providers: [{name: x, type: AddonProvider, url: '${NOPE}/x'}]", err: `providers[0].url of "x": no value for required variable NOPE`},
		"CMVersion":  {reason: "An invalid version is rejected.", content: "cert-manager: {version: newest}", err: `cert-manager.version: version "newest"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			file := tc.file
			if file == "" {
				file = "c.yaml"
			}
			path := write(t, filepath.Join(t.TempDir(), file), tc.content)
			got, err := Load(t.Context(), Options{Path: path, Env: environment(map[string]string{"XDG_CONFIG_HOME": "/xdg", "HOME": "/home/me"})})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s\nLoad(): want an error with %q and the file, got: %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Source != path {
				t.Errorf("Source: want %s, got %s", path, got.Source)
			}
			got.Source = ""
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreUnexported(Config{})); diff != "" {
				t.Errorf("%s\nLoad(): -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestYAMLKeys: what is set twice is an error, as for v1.7; what has no meaning is a warning, so that files of other versions can be used.
func TestYAMLKeys(t *testing.T) {
	for _, tc := range []struct {
		reason, file, content string
		err                   string
		warnings              []string
	}{
		{"the providers twice", "c.yaml", "providers: []\nCOUNTRY: no\nproviders:\n- {name: b, type: AddonProvider, url: /x}\n", "line 3: providers is set already in line 1", nil},
		{"a variable twice", "c.yaml", "A: 1\nA: 1\n", "line 2: A is set already in line 1", nil},
		{"in a nested map", "c.yaml", "images:\n  all: {tag: a, tag: b}\n", "line 2: tag is set already", nil},
		{"in JSON the last one counts", "c.json", `{"COUNTRY": "se", "COUNTRY": "no"}`, "", nil},
		{"merged keys are no repetition", "c.yaml", "images:\n  a: &a {tag: x}\n  b: {<<: *a, tag: z}\nCOUNTRY: no\n", "", nil},
		{"misspelled keys", "c.yaml", "images:\n  all: {repositry: m, Tag: t}\nproviders:\n- {name: b, type: AddonProvider, url: /x, version: v1}\ncert-manager: {timeouts: v1}\nprovider: [{name: c}]\nCOUNTRY: no\nnothing:\n", "", []string{
			"cert-manager.timeouts is ignored: known keys are url, version, timeout",
			"images.all.repositry is ignored: known keys are repository, tag",
			"provider is ignored: it is neither a known key nor a variable, whose value is a text, number or boolean",
			"providers[0].version is ignored: known keys are name, type, url",
		}},
	} {
		path := write(t, filepath.Join(t.TempDir(), tc.file), tc.content)
		var warnings []string
		c, err := Load(t.Context(), Options{Path: path, Env: environment(nil), Warn: func(format string, args ...any) {
			warnings = append(warnings, strings.TrimPrefix(fmt.Sprintf(format, args...), "clusterctl configuration "+path+": "))
		}})
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.reason, err)
			continue
		}
		if diff := cmp.Diff(tc.warnings, warnings); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
		if got, _ := c.Variable("COUNTRY"); got != "no" {
			t.Errorf("%s: no is a text, got %q", tc.reason, got)
		}
	}
}

// TestOverridesBesideTheFile: overrides are where the file is, if there are some.
func TestOverridesBesideTheFile(t *testing.T) {
	xdg, home := t.TempDir(), t.TempDir()
	env := environment(map[string]string{"XDG_CONFIG_HOME": xdg, "HOME": home})
	wants := func(reason, want string, o Options) {
		t.Helper()
		o.Env = env
		if c, err := Load(t.Context(), o); err != nil || c.OverridesFolder != want {
			t.Errorf("%s: got %+v, %v, want %s", reason, c, err, want)
		}
	}
	usual := filepath.Join(xdg, "cluster-api", "overrides")
	wants("without a file", usual, Options{})
	file := write(t, filepath.Join(home, ".cluster-api", "clusterctl.yaml"), "A: b")
	wants("without overrides beside the file", usual, Options{})
	beside := filepath.Join(home, ".cluster-api", "overrides")
	write(t, filepath.Join(beside, "x"), "")
	wants("with overrides beside the file", beside, Options{})
	wants("a file that is chosen has none beside it", usual, Options{Path: file})
	write(t, file, "overridesFolder: /o")
	wants("the file says where", "/o", Options{})
	write(t, filepath.Join(xdg, "cluster-api", "clusterctl.yaml"), "A: b")
	wants("with a file in the first place", usual, Options{})
}

// Keys that differ only in case are alternatives, the last in byte order applies: their values are not mixed.
func TestKeysInSeveralCases(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "c.yaml"),
		"CERT-MANAGER: {timeout: 1h}\nIMAGES: {all: {repository: a}, b: {tag: v1}}\ncert-manager: {version: v1.11.1}\nimages: {all: {tag: v2}}\n")
	got, err := Load(t.Context(), Options{Path: path, Env: environment(nil)})
	if err != nil {
		t.Fatal(err)
	}
	want := Default(environment(nil)).CertManager
	want.Version, want.URL = "v1.11.1", "https://github.com/cert-manager/cert-manager/releases/v1.11.1/cert-manager.yaml"
	if diff := cmp.Diff(want, got.CertManager); diff != "" {
		t.Errorf("cert-manager: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(components.ImageOverrides{"all": {Tag: "v2"}}, got.Images); diff != "" {
		t.Errorf("images: -want +got:\n%s", diff)
	}
}

func TestPlaces(t *testing.T) {
	xdg, home := t.TempDir(), t.TempDir()
	env := environment(map[string]string{"XDG_CONFIG_HOME": xdg, "HOME": home})
	load := func(o Options) string {
		t.Helper()
		o.Env = env
		c, err := Load(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		v, _ := c.Variable("WHICH")
		return v
	}
	if got := load(Options{}); got != "" {
		t.Errorf("without any file there are only defaults, got %q", got)
	}
	write(t, filepath.Join(home, ".cluster-api", "clusterctl.yaml"), "WHICH: legacy")
	if got := load(Options{}); got != "legacy" {
		t.Errorf("the legacy place is the last resort, got %q", got)
	}
	write(t, filepath.Join(xdg, "cluster-api", "clusterctl.yml"), "WHICH: xdg")
	if got := load(Options{}); got != "xdg" {
		t.Errorf("the XDG place comes first, got %q", got)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/c.yaml" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, "WHICH: web")
	}))
	defer server.Close()
	if got := load(Options{Path: server.URL + "/c.yaml"}); got != "web" {
		t.Errorf("a URL is downloaded, got %q", got)
	}
	for _, path := range []string{server.URL + "/missing.yaml", filepath.Join(home, "missing.yaml")} {
		if _, err := Load(t.Context(), Options{Path: path, Env: env}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("what the user asked for must exist: want an error with %s, got %v", path, err)
		}
	}
}

// A downloaded configuration is used without a file: nothing is left in the configuration folder.
func TestDownloadLeavesNothing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "WHICH: downloaded") }))
	defer server.Close()
	dir := t.TempDir()
	c, err := Load(t.Context(), Options{Path: server.URL + "/clusterctl.yaml", Env: environment(map[string]string{"XDG_CONFIG_HOME": dir, "HOME": dir})})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := c.Variable("WHICH"); got != "downloaded" {
		t.Errorf("the variable is %q", got)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}

// The configuration decides which code is installed: plain HTTP is a documented choice of users, with a warning, but never that of a
// server.
func TestPlainHTTP(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "WHICH: forged") }))
	defer plain.Close()
	const elsewhere = "http://config.example.com/c.yaml"
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/c.yaml":
			fmt.Fprint(w, "WHICH: genuine")
		case "/large.yaml":
			fmt.Fprint(w, "WHICH: genuine\n#"+strings.Repeat("x", packages.MaxConfiguration))
		default:
			http.Redirect(w, r, elsewhere, http.StatusFound)
		}
	}))
	defer secure.Close()
	client := secure.Client()
	// Whatever is not refused before ends up at the plain server.
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasPrefix(address, "config.example.com") {
			address = plain.Listener.Addr().String()
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	for _, test := range []struct{ reason, path, warning, want string }{
		{"plain HTTP is allowed, with a warning", elsewhere, "http://config.example.com/c.yaml is read over plain HTTP", ""},
		{"a redirect to it is refused", secure.URL + "/redirected.yaml", "", "refusing to follow a redirect to http://config.example.com/c.yaml"},
		{"half a file is none", secure.URL + "/large.yaml", "", "larger than 8 MiB"},
		{"HTTPS is fine", secure.URL + "/c.yaml", "", ""},
		{"connections within the machine are safe", plain.URL + "/c.yaml", "", ""},
	} {
		var warning string
		warn := func(format string, args ...any) { warning = fmt.Sprintf(format, args...) }
		_, err := Load(t.Context(), Options{Path: test.path, Env: environment(nil), HTTP: client, Warn: warn})
		if (test.warning == "") != (warning == "") || !strings.Contains(warning, test.warning) {
			t.Errorf("%s: warning %q, want %q", test.reason, warning, test.warning)
		}
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", test.reason, err, test.want)
		}
	}
}

func TestVariable(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "c.yaml"), "A: file\nB: file\nnum: 3\nflag: true\ngithub-token: tok\nlist: [1]\nempty: ''\nbig: 12345678901\n")
	c, err := Load(t.Context(), Options{Path: path, Env: environment(map[string]string{"A": "env", "E": ""})})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, name := range []string{"A", "B", "NUM", "FLAG", "GITHUB_TOKEN", "LIST", "EMPTY", "E", "BIG", "NOPE"} {
		if v, ok := c.Variable(name); ok {
			got[name] = v
		}
	}
	want := map[string]string{"A": "env", "B": "file", "NUM": "3", "FLAG": "true", "GITHUB_TOKEN": "tok", "EMPTY": "", "E": "", "BIG": "12345678901"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the environment wins over the file; keys ignore case; scalars become text: -want +got:\n%s", diff)
	}
	mixed, err := Load(t.Context(), Options{Path: path, Env: environment(map[string]string{"enableFoo": "exact", "ENABLEFOO": "upper", "MYVAR": "upper", "num": "exact"})})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"enableFoo": "exact", "ENABLEFOO": "upper", "EnableFoo": "upper", "myVar": "upper", "num": "exact", "NUM": "3"} {
		if got, _ := mixed.Variable(name); got != want {
			t.Errorf("the name as it is comes first: %s is %q, want %q", name, got, want)
		}
	}
	if v, _ := mixed.With(map[string]string{"ENABLEFOO": "flag"}).Variable("enableFoo"); v != "flag" {
		t.Errorf("With() must win over the environment in any case, got %q", v)
	}
	if v, _ := c.With(map[string]string{"A": "flag"}).Variable("A"); v != "flag" {
		t.Errorf("With() must win over the environment, got %q", v)
	}
}

// Configurations can be downloaded: what they expand to is limited.
func TestLimits(t *testing.T) {
	bomb := "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a, ", 100) + "]\n"
	for name, text := range map[string]string{".yaml": bomb, ".yml": strings.Repeat("#", packages.MaxConfiguration+1), ".toml": strings.Repeat("#", packages.MaxConfiguration+1)} {
		if _, err := parse([]byte(text), name); err == nil || len(err.Error()) > 200 {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}
