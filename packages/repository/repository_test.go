package repository

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
)

// page is what a fake server answers for a path; failures are answered with 503 first.
type page struct {
	status   int
	header   map[string]string
	body     string
	failures int
}

// web is a fake of every host on the network: paths are looked up with their host in front.
type web struct {
	mu    sync.Mutex
	pages map[string]page
	asked []string
}

func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := r.Header.Get("X-Test-Host") + r.URL.RequestURI()
	entry := key
	if auth := r.Header.Get("Authorization"); auth != "" {
		entry += " " + auth
	}
	w.asked = append(w.asked, entry)
	p, ok := w.pages[key]
	if !ok {
		http.NotFound(rw, r)
		return
	}
	if p.failures > 0 {
		p.failures--
		w.pages[key] = p
		http.Error(rw, "try later", http.StatusServiceUnavailable)
		return
	}
	for k, v := range p.header {
		rw.Header().Set(k, v)
	}
	if p.status != 0 {
		rw.WriteHeader(p.status)
	}
	fmt.Fprint(rw, p.body)
}

// toServer sends every request to one server, whichever host it names.
type toServer struct{ host string }

func (t toServer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Test-Host", r.URL.Host)
	r.URL.Scheme, r.URL.Host = "http", t.host
	return http.DefaultTransport.RoundTrip(r)
}

func newWeb(t *testing.T, pages map[string]page, o Options) (*web, *Store) {
	t.Helper()
	w := &web{pages: pages}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	o.HTTP = &http.Client{Transport: toServer{strings.TrimPrefix(server.URL, "http://")}}
	o.RetryInterval, o.RetryTimeout = time.Millisecond, 5*time.Second
	return w, NewStore(o)
}

const metadataV1 = `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 0, minor: 9, contract: v1alpha4}
- {major: 1, minor: 0, contract: v1beta1}
- {major: 1, minor: 1, contract: v1beta1}
`

func aws(url string) packages.Provider {
	return packages.Provider{Name: "aws", Type: clusterctlv1.InfrastructureProviderType, URL: url}
}

const awsLatest = "https://github.com/org/capa/releases/latest/infrastructure-components.yaml"

func TestDefaultVersion(t *testing.T) {
	release := func(v, metadata string) (string, page) {
		return "github.com/org/capa/releases/download/" + v + "/metadata.yaml", page{body: metadata}
	}
	list := func(versions ...string) page { return page{body: strings.Join(versions, "\n")} }
	tests := map[string]struct {
		reason    string
		versions  page
		metadata  map[string]string
		contracts []string
		url       string
		want      string
		err       string
	}{
		"Newest": {
			reason:   "The newest stable version is taken; pre-releases come last, versions compare by number.",
			versions: list("v1.1.9", "v1.1.10", "v1.2.0-rc.0", "nightly"), metadata: map[string]string{"v1.1.10": metadataV1},
			url: awsLatest, want: "v1.1.10",
		},
		"NoMetadataYet": {
			reason:   "A tag whose files are not published yet is skipped.",
			versions: list("v1.1.0", "v1.1.1"), metadata: map[string]string{"v1.1.0": metadataV1},
			url: awsLatest, want: "v1.1.0",
		},
		"OlderContract": {
			reason:   "If the latest version has another contract, the latest of the right series is used.",
			versions: list("v2.0.0", "v1.1.0", "v1.1.3", "v1.0.0"),
			metadata: map[string]string{"v2.0.0": metadataV1 + "- {major: 2, minor: 0, contract: v1beta3}\n", "v1.1.3": metadataV1},
			url:      awsLatest, want: "v1.1.3",
		},
		"OlderContractWithoutFiles": {
			reason:   "A tag of the right series whose release is not published yet is not used.",
			versions: list("v2.0.0", "v1.1.4", "v1.1.3"),
			metadata: map[string]string{"v2.0.0": metadataV1 + "- {major: 2, minor: 0, contract: v1beta3}\n", "v1.1.3": metadataV1},
			url:      awsLatest, want: "v1.1.3",
		},
		"NewerContract": {
			reason:   "The newest version of any supported contract is used.",
			versions: list("v2.0.0", "v1.1.3"),
			metadata: map[string]string{"v2.0.0": metadataV1 + "- {major: 2, minor: 0, contract: v1beta2}\n", "v1.1.3": metadataV1},
			url:      awsLatest, want: "v2.0.0",
		},
		"NewerContractOfOthers": {
			reason: "The newest series of the contracts that the core provider works with is used.", contracts: []string{"v1beta1"},
			versions: list("v2.0.0", "v1.1.3"),
			metadata: map[string]string{"v2.0.0": metadataV1 + "- {major: 2, minor: 0, contract: v1beta2}\n", "v1.1.3": metadataV1},
			url:      awsLatest, want: "v1.1.3",
		},
		"OnlyPreRelease": {
			reason:   "A pre-release is used if there is nothing else.",
			versions: list("v1.1.0-alpha.1", "v1.1.0-alpha.0"), metadata: map[string]string{"v1.1.0-alpha.1": metadataV1},
			url: awsLatest, want: "v1.1.0-alpha.1",
		},
		"NoContract": {
			reason:   "A provider without the contract is rejected.",
			versions: list("v1.1.0"), metadata: map[string]string{"v1.1.0": strings.ReplaceAll(metadataV1, "v1beta1", "v1beta3")},
			url: awsLatest, err: "no release series for contract v1beta1 or v1beta2",
		},
		"NoFiles": {
			reason:   "The error lists tags without files.",
			versions: list("v1.1.0", "v1.0.0"), url: awsLatest, err: "none of the latest versions (v1.1.0, v1.0.0) has a metadata.yaml",
		},
		"BadMetadata": {
			reason:   "Metadata of another kind is rejected, and the error has file and version.",
			versions: list("v1.1.0"), metadata: map[string]string{"v1.1.0": "kind: Other"},
			url: awsLatest, err: `invalid metadata.yaml of infrastructure-aws v1.1.0: it has apiVersion "" and kind "Other"`,
		},
		"Pinned": {
			reason: "A version in the URL is used without a request.",
			url:    "https://github.com/org/capa/releases/v0.5.0/infrastructure-components.yaml", want: "v0.5.0",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pages := map[string]page{"proxy.example/github.com/org/capa/@v/list": tc.versions}
			for v, m := range tc.metadata {
				address, p := release(v, m)
				pages[address] = p
			}
			_, store := newWeb(t, pages, Options{GoProxy: "https://proxy.example"})
			c, err := store.Open(aws(tc.url))
			if err != nil {
				t.Fatal(err)
			}
			c.Contracts = tc.contracts
			got, err := c.DefaultVersion(t.Context())
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("%s\nDefaultVersion(): want error %q, got: %v", tc.reason, tc.err, err)
			}
			if got != tc.want {
				t.Errorf("%s\nDefaultVersion(): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestGitHubVersions(t *testing.T) {
	const api = "api.github.com/repos/Org/capa/releases?per_page=100"
	tests := map[string]struct {
		reason  string
		pages   map[string]page
		options Options
		want    []string
		asked   []string
		err     string
	}{
		"ProxyMajors": {
			reason: "The proxy is queried for one major version after the other until there are no more; upper-case letters are escaped.",
			pages: map[string]page{
				"proxy.example/github.com/!org/capa/@v/list":    {body: "v1.0.0\nv0.1.0\n"},
				"proxy.example/github.com/!org/capa/v2/@v/list": {body: "v2.0.0\n"},
			},
			options: Options{GoProxy: "https://proxy.example", GitHubToken: "secret"},
			want:    []string{"v2.0.0", "v1.0.0", "v0.1.0"},
			asked: []string{
				"proxy.example/github.com/!org/capa/@v/list", "proxy.example/github.com/!org/capa/v2/@v/list",
				"proxy.example/github.com/!org/capa/v3/@v/list",
			},
		},
		"ProxyUnknown": {
			reason: "A repository that the proxy does not have is read from GitHub, page by page, without drafts.",
			pages: map[string]page{
				api: {body: `[{"tag_name":"v1.1.0"},{"tag_name":"v1.2.0","draft":true},{"tag_name":"test/v1"}]`,
					header: map[string]string{"Link": `<https://api.github.com/next>; rel="next", <https://api.github.com/last>; rel="last"`}},
				"api.github.com/next": {body: `[{"tag_name":"v1.0.0"}]`},
			},
			options: Options{GoProxy: "https://proxy.example", GitHubToken: "secret"},
			want:    []string{"v1.1.0", "v1.0.0"},
			asked: []string{
				"proxy.example/github.com/!org/capa/@v/list", api + " Bearer secret", "api.github.com/next Bearer secret",
			},
		},
		"Retried": {
			reason: "Requests are retried if a server is down temporarily.",
			pages:  map[string]page{api: {body: `[{"tag_name":"v1.1.0"}]`, failures: 2}},
			want:   []string{"v1.1.0"}, asked: []string{api, api, api},
		},
		"RateLimited": {
			reason: "An exceeded rate limit fails immediately, and the error says what to do.",
			pages:  map[string]page{api: {status: http.StatusForbidden, header: map[string]string{"X-RateLimit-Remaining": "0"}}},
			err:    "set GITHUB_TOKEN", asked: []string{api},
		},
		"BadToken": {
			reason: "A rejected token is mentioned, but not shown.",
			pages:  map[string]page{api: {status: http.StatusUnauthorized}}, options: Options{GitHubToken: "secret"},
			err: "check that GITHUB_TOKEN is set, is valid", asked: []string{api + " Bearer secret"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, store := newWeb(t, tc.pages, tc.options)
			c, err := store.Open(aws("https://github.com/Org/capa/releases/latest/infrastructure-components.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Versions(t.Context())
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "secret")) {
				t.Fatalf("%s\nVersions(): want error %q, got: %v", tc.reason, tc.err, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nVersions(): -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.asked, w.asked); diff != "" {
				t.Errorf("%s\nrequests: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGitHubFile(t *testing.T) {
	const (
		plain   = "github.com/org/capa/releases/download/v1.0.0/x.yaml"
		release = "api.github.com/repos/org/capa/releases/tags/v1.0.0"
		asset   = "api.github.com/repos/org/capa/releases/assets/7"
	)
	withAsset := map[string]page{release: {body: `{"tag_name":"v1.0.0","assets":[{"id":7,"name":"x.yaml"}]}`}, asset: {body: "from api"}}
	tests := map[string]struct {
		reason string
		pages  map[string]page
		proxy  string
		want   string
		asked  []string
		err    string
	}{
		"Plain":    {reason: "With a proxy the plain page is sufficient.", proxy: "https://proxy.example", pages: map[string]page{plain: {body: "plain"}}, want: "plain", asked: []string{plain}},
		"Fallback": {reason: "Files missing on the plain page may be private and are read through the API.", proxy: "https://proxy.example", pages: withAsset, want: "from api", asked: []string{plain, release, asset}},
		"API":      {reason: "Without a proxy only the API is used.", pages: withAsset, want: "from api", asked: []string{release, asset}},
		"NoFile":   {reason: "A release without the file is an error.", pages: map[string]page{release: {body: `{"assets":[]}`}}, err: "has no file x.yaml", asked: []string{release}},
		"NoTag":    {reason: "A missing release is an error.", err: "org/capa has no release v1.0.0", asked: []string{release}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, store := newWeb(t, tc.pages, Options{GoProxy: tc.proxy})
			c, err := store.Open(aws(awsLatest))
			if err != nil {
				t.Fatal(err)
			}
			// Twice: the second answer must come from memory.
			for range 2 {
				got, err := c.File(t.Context(), "v1.0.0", "x.yaml")
				if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err) || !errors.Is(err, ErrNotFound)) {
					t.Fatalf("%s\nFile(): want error %q, got: %v", tc.reason, tc.err, err)
				}
				if string(got) != tc.want {
					t.Errorf("%s\nFile(): want %q, got %q", tc.reason, tc.want, got)
				}
			}
			if diff := cmp.Diff(tc.asked, w.asked); diff != "" {
				t.Errorf("%s\nrequests: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGitLab(t *testing.T) {
	const prefix = "gitlab.example.com/api/v4/projects/group%2Fcapa/packages/generic/capa/"
	w, store := newWeb(t, map[string]page{prefix + "v1.0.0/metadata.yaml": {body: metadataV1}}, Options{GitHubToken: "secret"})
	c, err := store.Open(aws("https://" + prefix + "v1.0.0/infrastructure-components.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	version, err := c.DefaultVersion(t.Context())
	if err != nil || version != "v1.0.0" || c.ComponentsFile() != "infrastructure-components.yaml" {
		t.Errorf("want version v1.0.0 and infrastructure-components.yaml, got %q, %q, %v", version, c.ComponentsFile(), err)
	}
	contract, err := c.Contract(t.Context(), version)
	if err != nil || contract != "v1beta1" {
		t.Errorf("Contract(): want v1beta1, got %q, %v", contract, err)
	}
	if diff := cmp.Diff([]string{prefix + "v1.0.0/metadata.yaml"}, w.asked); diff != "" {
		t.Errorf("requests, without credentials: -want +got:\n%s", diff)
	}
	if _, err := c.Files(t.Context(), version); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Files(): want ErrUnsupported, got %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	tests := map[string]struct{ reason, url, err string }{
		"Host":          {reason: "Only known hosts are repositories.", url: "https://example.com/x/y/releases/latest/f.yaml", err: "use https://github.com/"},
		"Scheme":        {reason: "Plain http is not accepted.", url: "http://github.com/x/y/releases/latest/f.yaml", err: "use https://github.com/"},
		"Relative":      {reason: "Relative paths are ambiguous in a configuration file.", url: "repo/infrastructure-aws/latest/f.yaml", err: "an absolute path"},
		"GitHubForm":    {reason: "The error shows the form of GitHub URLs.", url: "https://github.com/x/y/latest/f.yaml", err: "/releases/{latest|version}/{file}"},
		"GitHubVersion": {reason: "Versions are semantic.", url: "https://github.com/x/y/releases/newest/f.yaml", err: `version "newest" is not a semantic version`},
		"GitHubParent":  {reason: "With the user's token nothing else is asked of GitHub's API.", url: "https://github.com/../../releases/latest/f.yaml", err: `the part ".."`},
		"GitHubEscaped": {reason: "Nor when it is escaped.", url: "https://github.com/x/%2e%2e/releases/latest/f.yaml", err: `the part ".."`},
		"GitHubFile":    {reason: "The same goes for the file.", url: "https://github.com/x/y/releases/latest/../../f.yaml", err: `the part ".."`},
		"GitLabParent":  {reason: "And for GitLab.", url: "https://gitlab.x.org/api/v4/projects/../packages/generic/p/v1.0.0/f.yaml", err: `the part ".."`},
		"GitLabSlash":   {reason: "A project's slashes must be escaped.", url: "https://gitlab.x.org/api/v4/projects/a/b/packages/generic/p/v1.0.0/f.yaml", err: "%2F"},
		"GitLabLatest":  {reason: "GitLab packages cannot be listed, so there is no latest.", url: "https://gitlab.x.org/api/v4/projects/1/packages/generic/p/latest/f.yaml", err: `version "latest" is not`},
		"LocalLabel":    {reason: "The folder must be named by the provider's label.", url: "/repo/aws/latest/f.yaml", err: `has "aws" where "infrastructure-aws" should be`},
		"LocalVersion":  {reason: "The version must be semantic or latest.", url: "file:///repo/infrastructure-aws/new/f.yaml", err: `version "new" is not`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := NewStore(Options{}).Open(aws(tc.url))
			if err == nil || !strings.Contains(err.Error(), tc.err) || !strings.Contains(err.Error(), tc.url) {
				t.Errorf("%s\nOpen(): want an error with %q and the url, got: %v", tc.reason, tc.err, err)
			}
		})
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLocalAndOverrides(t *testing.T) {
	base, overrides := t.TempDir(), t.TempDir()
	for _, v := range []string{"v1.0.0", "v1.1.0", "v1.1.1-rc.0", "notes"} {
		writeFile(t, filepath.Join(base, "infrastructure-aws", v, "metadata.yaml"), metadataV1)
	}
	writeFile(t, filepath.Join(base, "infrastructure-aws", "v1.1.0", "cluster-template.yaml"), "published")
	writeFile(t, filepath.Join(overrides, "infrastructure-aws", "v1.1.0", "cluster-template.yaml"), "mine")
	for _, url := range []string{base + "/infrastructure-aws/latest/f.yaml", "file://" + base + "/infrastructure-aws/latest/f.yaml"} {
		c, err := NewStore(Options{OverridesFolder: overrides}).Open(aws(url))
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		version, err := c.DefaultVersion(ctx)
		if err != nil || version != "v1.1.0" {
			t.Fatalf("DefaultVersion(): want v1.1.0, got %q, %v", version, err)
		}
		versions, err := c.Versions(ctx)
		if diff := cmp.Diff([]string{"v1.1.0", "v1.0.0", "v1.1.1-rc.0"}, versions); diff != "" || err != nil {
			t.Errorf("Versions(): %v -want +got:\n%s", err, diff)
		}
		raw, err := c.File(ctx, version, "cluster-template.yaml")
		if err != nil || string(raw) != "mine" {
			t.Errorf("File(): an override must win, got %q, %v", raw, err)
		}
		files, err := c.Files(ctx, version)
		if err != nil || !slices.Equal(files, []string{"cluster-template.yaml", "metadata.yaml"}) {
			t.Errorf("Files(): got %v, %v", files, err)
		}
		if _, err := c.File(ctx, version, "missing.yaml"); !errors.Is(err, ErrNotFound) {
			t.Errorf("File(missing): want ErrNotFound, got %v", err)
		}
	}
}

func TestGoProxyURL(t *testing.T) {
	tests := map[string]struct{ reason, list, fallback, want, err string }{
		"Empty":    {reason: "Empty means the build's default.", fallback: "https://p.example,direct", want: "https://p.example"},
		"Nothing":  {reason: "Empty without a fallback means no proxy."},
		"Off":      {reason: "off disables it.", list: "off", fallback: "https://p.example"},
		"Direct":   {reason: "direct disables it.", list: "direct", fallback: "https://p.example"},
		"First":    {reason: "The first element counts.", list: "https://a.example/x/|https://b.example", want: "https://a.example/x"},
		"NoScheme": {reason: "A host without scheme means https.", list: "a.example", want: "https://a.example"},
		"Bad":      {reason: "An invalid URL is rejected.", list: "ftp://a.example", err: "GOPROXY starts with"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := GoProxyURL(tc.list, tc.fallback)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("%s\nGoProxyURL(): want error %q, got: %v", tc.reason, tc.err, err)
			}
			if got != tc.want {
				t.Errorf("%s\nGoProxyURL(): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestContent(t *testing.T) {
	_, store := newWeb(t, map[string]page{
		"api.github.com/repos/org/repo/contents/a/t.yaml?ref=main": {body: "blob"},
		"api.github.com/repos/org/repo/releases/tags/v1.0.0":       {body: `{"assets":[{"id":1,"name":"t.yaml"}]}`},
		"api.github.com/repos/org/repo/releases/assets/1":          {body: "asset"},
		"foo.example/t.yaml": {body: "raw"},
	}, Options{})
	for address, want := range map[string]string{
		"https://github.com/org/repo/blob/main/a/t.yaml":              "blob",
		"https://github.com/org/repo/releases/download/v1.0.0/t.yaml": "asset",
		"https://foo.example/t.yaml":                                  "raw",
	} {
		got, err := store.Content(context.Background(), address)
		if err != nil || string(got) != want {
			t.Errorf("Content(%s): want %q, got %q, %v", address, want, got, err)
		}
	}
	if _, err := store.Content(context.Background(), "https://github.com/org/repo/tree/main/a"); err == nil || !strings.Contains(err.Error(), "blob/{branch}") {
		t.Errorf("Content(tree): want an error that shows the accepted forms, got %v", err)
	}
}

// Without a network, or behind a proxy, the error suggests another repository.
func TestUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	store := NewStore(Options{
		HTTP:         &http.Client{Transport: toServer{strings.TrimPrefix(server.URL, "http://")}},
		RetryTimeout: time.Millisecond, RetryInterval: time.Millisecond,
	})
	c, err := store.Open(aws(awsLatest))
	if err != nil {
		t.Fatal(err)
	}
	const want = "check the connection, or set a reachable url for the provider in the configuration file (--config)"
	if _, err := c.Versions(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Versions(): %v, want %q", err, want)
	}
	if _, err := c.File(t.Context(), "v1.1.0", "metadata.yaml"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("File(): %v, want %q", err, want)
	}
}

// TestProxyDown: what takes time is told, and why, and the reason is in the error if nothing else works; without passwords.
func TestProxyDown(t *testing.T) {
	const list = "proxy.example/github.com/org/capa/@v/list"
	const api = "api.github.com/repos/org/capa/releases?per_page=100"
	proxyFailure := "the Go module proxy could not be used (GOPROXY=off leaves it out): GET https://me:xxxxx@proxy.example/github.com/org/capa/@v/list: 403 Forbidden"
	for _, tc := range []struct {
		reason string
		pages  map[string]page
		report []string
		err    []string
	}{
		{"The first failure is reported.", map[string]page{list: {body: "v1.0.0\n", failures: 3}},
			[]string{"Retrying for up to 5s: GET https://me:xxxxx@proxy.example/github.com/org/capa/@v/list: 503 Service Unavailable"}, nil},
		{"So is that something else is tried.", map[string]page{list: {status: http.StatusForbidden}, api: {body: `[{"tag_name":"v1.0.0"}]`}},
			[]string{"Listing the versions of org/capa with GitHub's API, because " + proxyFailure}, nil},
		{"An error has both reasons.", map[string]page{list: {status: http.StatusForbidden}, api: {status: http.StatusForbidden, header: map[string]string{"X-RateLimit-Remaining": "0"}}},
			[]string{proxyFailure}, []string{"the rate limit of GitHub's API is exceeded", proxyFailure}},
		{"A proxy that does not know the repository is none of users' business.", map[string]page{api: {body: `[{"tag_name":"v1.0.0"}]`}}, nil, nil},
	} {
		var reports []string
		_, store := newWeb(t, tc.pages, Options{GoProxy: "https://me:secret@proxy.example", Report: func(format string, args ...any) {
			reports = append(reports, fmt.Sprintf(format, args...))
		}})
		c, err := store.Open(aws(awsLatest))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Versions(t.Context())
		if (err != nil) != (tc.err != nil) || strings.Contains(fmt.Sprint(err, reports), "secret") {
			t.Errorf("%s\ngot error %v, reports %q", tc.reason, err, reports)
		}
		for _, want := range tc.err {
			if !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%s\nwant an error with %q, got %v", tc.reason, want, err)
			}
		}
		if len(reports) != len(tc.report) {
			t.Fatalf("%s\nreports: %q", tc.reason, reports)
		}
		for i, want := range tc.report {
			if !strings.Contains(reports[i], want) {
				t.Errorf("%s\nwant a report of %q, got %q", tc.reason, want, reports[i])
			}
		}
	}
}

// TestShownAddresses: the addresses that GitHub shows for files of releases are as good as those of the configuration.
func TestShownAddresses(t *testing.T) {
	for address, want := range map[string]location{
		"https://github.com/x/y/releases/latest/f.yaml":          {version: "latest", file: "f.yaml"},
		"https://github.com/x/y/releases/latest/download/f.yaml": {version: "latest", file: "f.yaml"},
		"https://github.com/x/y/releases/download/v1.0.0/f.yaml": {version: "v1.0.0", file: "f.yaml"},
		"https://github.com/x/y/releases/v1.0.0/download/f.yaml": {version: "v1.0.0", file: "download/f.yaml"},
		"https://github.com/x/y/releases/latest/download":        {version: "latest", file: "download"},
	} {
		c, err := NewStore(Options{}).Open(aws(address))
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if c.loc.version != want.version || c.loc.file != want.file {
			t.Errorf("%s: got %+v, want %+v", address, c.loc, want)
		}
	}
}
