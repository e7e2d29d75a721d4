package repository

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
)

// artifact returns an artifact with files.
func artifact(t *testing.T, files map[string]string) v1.Image {
	t.Helper()
	image := empty.Image
	for _, title := range slices.Sorted(func(yield func(string) bool) {
		for title := range files {
			if !yield(title) {
				return
			}
		}
	}) {
		var err error
		image, err = mutate.Append(image, mutate.Addendum{
			Layer:       static.NewLayer([]byte(files[title]), types.MediaType("application/yaml")),
			Annotations: map[string]string{titleAnnotation: title},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return image
}

// serve serves a registry with artifacts of a repository, by tag. Faults may replace responses.
func serve(t *testing.T, artifacts map[string]v1.Image, fault func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	genuine := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	pushed := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !pushed || fault == nil || !fault(w, r) {
			genuine.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	for tag, image := range artifacts {
		to, err := name.NewTag(host+"/capx/release:"+tag, name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(to, image); err != nil {
			t.Fatal(err)
		}
	}
	pushed = true
	return "http://" + host + "/capx/release"
}

func TestOCI(t *testing.T) {
	plain := func(components string) map[string]string {
		return map[string]string{"components.yaml": components, "metadata.yaml": metadataOfConfigMap}
	}
	blobs := func(do func(http.ResponseWriter)) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			// The second blob is that of the components or of the metadata, never the manifest.
			if !strings.Contains(r.URL.Path, "/blobs/") {
				return false
			}
			do(w)
			return true
		}
	}
	demand := func(user, password string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			u, p, _ := r.BasicAuth()
			if u == user && p == password {
				return false
			}
			w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
			http.Error(w, "no", http.StatusUnauthorized)
			return true
		}
	}
	for _, tc := range []struct {
		reason              string
		artifacts           map[string]map[string]string
		suffix              string
		variables           map[string]string
		fault               func(http.ResponseWriter, *http.Request) bool
		version, components string
		failure             string
	}{
		{reason: "the latest tag that is a version", artifacts: map[string]map[string]string{"v1.0.1": plain("1"), "v1.0.2": plain("2"), "latest": plain("x")},
			version: "v1.0.2", components: "2"},
		{reason: "long titles", artifacts: map[string]map[string]string{"v1.0.1": {
			"infrastructure-x-v1.0.1-components.yaml": "long", "infrastructure-x-v1.0.1-metadata.yaml": metadataOfConfigMap,
		}}, version: "v1.0.1", components: "long"},
		{reason: "the title with the type", artifacts: map[string]map[string]string{"v1.0.1": {
			"infrastructure-components.yaml": "typed", "metadata.yaml": metadataOfConfigMap,
		}}, version: "v1.0.1", components: "typed"},
		{reason: "a tag", artifacts: map[string]map[string]string{"v1.0.1": plain("1"), "v1.0.2": plain("2")}, suffix: ":v1.0.1", version: "v1.0.1", components: "1"},
		{reason: "a missing tag", artifacts: map[string]map[string]string{"v1.0.1": plain("1")}, suffix: ":v1.0.9", failure: "not found"},
		{reason: "no components", artifacts: map[string]map[string]string{"v1.0.1": {"metadata.yaml": metadataOfConfigMap}}, version: "v1.0.1",
			failure: "the artifact has no layer with one of the titles"},
		{reason: "credentials", artifacts: map[string]map[string]string{"v1.0.1": plain("1")}, fault: demand("u", "hidden"),
			variables: map[string]string{"OCI_USERNAME": "u", "OCI_PASSWORD": "hidden"}, version: "v1.0.1", components: "1"},
		{reason: "wrong credentials", artifacts: map[string]map[string]string{"v1.0.1": plain("1")}, fault: demand("u", "other"),
			variables: map[string]string{"OCI_USERNAME": "u", "OCI_PASSWORD": "hidden"}, failure: "set OCI_USERNAME and OCI_PASSWORD"},
		{reason: "another content", artifacts: map[string]map[string]string{"v1.0.1": plain("1")},
			fault: blobs(func(w http.ResponseWriter) { _, _ = w.Write([]byte("wrong")) }), failure: "artifact"},
		{reason: "a cut connection", artifacts: map[string]map[string]string{"v1.0.1": plain("1")},
			fault: blobs(func(w http.ResponseWriter) {
				w.Header().Set("Content-Length", "100000")
				_, _ = w.Write([]byte("a part"))
				panic(http.ErrAbortHandler)
			}), failure: "artifact"},
		{reason: "a large layer", artifacts: map[string]map[string]string{"v1.0.1": plain(string(bytes.Repeat([]byte("x"), maxDownload+1)))},
			version: "v1.0.1", failure: "layer components.yaml of the artifact is larger than"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			images := map[string]v1.Image{}
			for tag, files := range tc.artifacts {
				images[tag] = artifact(t, files)
			}
			reference := serve(t, images, tc.fault) + tc.suffix
			p := packages.Provider{Name: "x", Type: clusterctlv1.InfrastructureProviderType}
			c, err := FromOCI(p, reference, func(name string) string { return tc.variables[name] }, nil)
			if err != nil {
				t.Fatal(err)
			}
			check(t, c, tc.version, tc.components, tc.failure)
		})
	}
}

// check reads the components of the latest version.
func check(t *testing.T, c *Client, wantVersion, wantComponents, failure string) {
	t.Helper()
	version, err := c.DefaultVersion(t.Context())
	var raw []byte
	if err == nil {
		raw, err = c.File(t.Context(), version, c.ComponentsFile())
	}
	if version != wantVersion || string(raw) != wantComponents {
		t.Errorf("got version %q with %q, want %q with %q", version, raw, wantVersion, wantComponents)
	}
	switch {
	case failure == "" && err != nil:
		t.Error(err)
	case failure != "" && (err == nil || !strings.Contains(err.Error(), failure) || strings.Contains(err.Error(), "hidden")):
		t.Errorf("got error %v, want %q", err, failure)
	}
}

func TestOCILayout(t *testing.T) {
	dir := t.TempDir()
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"v1.0.1", "v1.0.2"} {
		image := artifact(t, map[string]string{"components.yaml": "of " + tag, "metadata.yaml": metadataOfConfigMap})
		if err := path.AppendImage(image, layout.WithAnnotations(map[string]string{refAnnotation: tag})); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ reason, reference, version, components, failure string }{
		{"the latest", dir, "v1.0.2", "of v1.0.2", ""},
		{"a tag", dir + ":v1.0.1", "v1.0.1", "of v1.0.1", ""},
		{"a missing tag", dir + ":v1.0.7", "", "", "none of the latest versions (v1.0.7) has a metadata.yaml"},
		{"no layout", dir + "/missing", "", "", "not found"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c, err := FromOCI(packages.Provider{Name: "x", Type: clusterctlv1.InfrastructureProviderType}, tc.reference, func(string) string { return "" }, nil)
			if err != nil {
				t.Fatal(err)
			}
			check(t, c, tc.version, tc.components, tc.failure)
		})
	}
}

func TestInvalidArtifacts(t *testing.T) {
	for _, reference := range []string{"", "x", "http://", "host/UPPER", "host/repo:ba d"} {
		if _, err := FromOCI(packages.Provider{Name: "x", Type: clusterctlv1.CoreProviderType}, reference, func(string) string { return "" }, nil); err == nil {
			t.Errorf("%q is accepted", reference)
		}
	}
}
