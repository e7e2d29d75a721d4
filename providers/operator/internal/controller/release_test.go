package controller

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

const (
	githubAPI  = "api.github.com"
	gitlabHost = "gitlab.example.com"
	noNetwork  = "check the connection of the operator, or set spec.fetchConfig to a source that it can reach"
)

// packagePath is the path of a package of a version in GitLab.
func packagePath(name, version string) string {
	return "/api/v4/projects/p/packages/generic/" + name + "/" + version + "/"
}

// TestRelease tries releases that cannot be read.
func TestRelease(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "layout")
	_, err := layout.Write(folder, empty.Index)
	testenv.Must(t, err)
	_, series := simpleRelease("wrong", "v1.0.0")
	const fetch = "ComponentsFetchError"
	tryMistakes(t, operatorv1.ProviderInstalledCondition, []mistake{
		{reason: "a URL without a file", spec: "fetchConfig: {url: https://github.com/owner/name}", because: fetch,
			words: []string{"spec.fetchConfig.url", "https://github.com/owner/name", "https://github.com/{owner}/{repository}/releases/{latest|version}/{file}"}},
		{reason: "a URL that is none of a repository", spec: "fetchConfig: {url: \"http://localhost/components.yaml\"}", because: fetch,
			words: []string{"spec.fetchConfig.url", "http://localhost/components.yaml", "or an absolute path"}},
		{reason: "a URL that does not respond", spec: "fetchConfig: {url: \"https://gitlab.down.example.com" + packagePath("p", "v1.0.0") + "components.yaml\"}", because: fetch,
			words: []string{"https://gitlab.down.example.com" + packagePath("p", "v1.0.0") + "metadata.yaml", noNetwork}},
		{reason: "an artifact that does not exist", spec: "fetchConfig: {oci: " + folder + "}", because: fetch,
			words: []string{folder, "no artifact with tag v1.0.0", "add it, or correct spec.version or spec.fetchConfig"}},
		{reason: "no ConfigMap", spec: "fetchConfig: {selector: {matchLabels: {a: none}}}", because: fetch,
			words: []string{"ConfigMaps of namespace mistakes with labels a=none", "v1.0.0", "add it, or correct spec.version or spec.fetchConfig"}},
		{reason: "no components", release: data("components", nil), because: fetch, words: []string{"has no key components", "add it"}},
		{reason: "no metadata", release: data("metadata", nil), because: fetch, words: []string{"has no key metadata", "add it"}},
		{reason: "metadata that is no YAML", release: data("metadata", ptr.To("a: [")), because: fetch, words: []string{"invalid metadata.yaml of infrastructure-"}},
		{reason: "metadata that is only a comment", release: data("metadata", ptr.To("# metadata information goes here")), because: fetch,
			words: []string{"metadata.yaml of infrastructure-wrong v1.0.0", "has no release series 1.0"}},
		{reason: "metadata without the series", release: data("metadata", ptr.To(strings.ReplaceAll(series, "major: 1", "major: 7"))), because: fetch,
			words: []string{"has no release series 1.0", "store the release in a ConfigMap with corrected metadata"}},
		{reason: "components that are not compressed", release: func(m *corev1.ConfigMap) {
			m.Annotations = map[string]string{"provider.cluster.x-k8s.io/compressed": "true"}
		}, because: fetch, words: []string{"annotation provider.cluster.x-k8s.io/compressed", "cannot be decompressed"}},
		{reason: "a missing Secret", spec: "secretName: none", because: fetch, words: []string{"spec.secretName: Secret mistakes/none does not exist", "create it"}},
		{reason: "a missing Secret of another namespace", spec: "configSecret: {name: none, namespace: default}", because: fetch,
			words: []string{"spec.configSecret: Secret default/none does not exist"}},
	})
}

// TestDownloadsFail: a condition reports how, the server is asked again after pauses only, and installs when it works.
func TestDownloadsFail(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for _, tc := range []struct {
		reason  string
		respond http.HandlerFunc
		words   []string
	}{
		{"the server fails", status(http.StatusInternalServerError), []string{"500 Internal Server Error", "try again later"}},
		{"the file does not exist", status(http.StatusNotFound), []string{"404 Not Found", "correct spec.version or spec.fetchConfig"}},
		{"credentials are missing", status(http.StatusUnauthorized), []string{"401 Unauthorized", "store the release in a ConfigMap, and set spec.fetchConfig.selector"}},
		{"the connection is cut", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, "apiVersion: ")
		}, []string{"the download ended after 12 bytes", noNetwork}},
		{"redirects in a circle", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, []string{"redirects"}},
		{"the file is too large", func(w http.ResponseWriter, _ *http.Request) {
			for chunk, n := make([]byte, 1<<20), 0; n < 65<<20; n += len(chunk) {
				_, _ = w.Write(chunk) // It is memory.
			}
		}, []string{"the file is larger than 64Mi"}},
		{"the server does not respond in time", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, []string{"deadline exceeded", noNetwork}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t)
			if strings.Contains(tc.reason, "in time") {
				w.source.Options.HTTP.Timeout = 10 * time.Millisecond
			}
			w.hosts[gitlabHost] = tc.respond
			page := "https://" + gitlabHost + packagePath("x", "v1.0.0")
			w.create(strings.Replace(simpleProvider, "selector: {matchLabels: {provider-components: x}}", `url: "`+page+`infrastructure-components.yaml"`, 1))
			p := w.reconcile(w.provider("InfrastructureProvider", "x-system", "x"))
			w.reports(p, operatorv1.ProviderInstalledCondition, append([]string{"False ComponentsFetchError: ", page}, tc.words...)...)

			attempt := len(w.requests)
			w.Clock.Step(9 * time.Second)
			p = w.reconcile(p)
			if n := len(w.requests); n != attempt {
				t.Errorf("before the pause of 10 s is over, %d requests were made", n-attempt)
			}
			w.reports(p, operatorv1.ProviderInstalledCondition, append([]string{"False ComponentsFetchError: ", page}, tc.words...)...)
			w.Clock.Step(time.Second)
			p = w.reconcile(p)
			if n := len(w.requests); n != 2*attempt {
				t.Errorf("%d requests after a pause, %d by the first attempt", n-attempt, attempt)
			}
			w.Clock.Step(19 * time.Second)
			p = w.reconcile(p)
			if n := len(w.requests); n != 2*attempt {
				t.Errorf("before the second pause of 20 s is over, %d requests were made", n-2*attempt)
			}
			w.Clock.Step(time.Second)
			w.source.Options.HTTP.Timeout = 0
			w.hosts[gitlabHost] = serveFiles("x", "v1.0.0")
			p = w.reconcile(p)
			w.reports(p, operatorv1.ProviderInstalledCondition, "True")
		})
	}
}

// serveFiles responds with the files of a simple release.
func serveFiles(provider, version string) http.HandlerFunc {
	components, metadata := simpleRelease(provider, version)
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/"+repository.MetadataFile) {
			fmt.Fprint(w, metadata)
			return
		}
		fmt.Fprint(w, components)
	}
}

// TestDownloadOfAnUpgradeFails: the installed version stays, and the provider ready, until the server works; then the upgrade continues.
func TestDownloadOfAnUpgradeFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simpleConfigMap("x-system", "x", "v1.0.0"))
	w.create(simpleProvider)
	p := w.reconcile(w.provider("InfrastructureProvider", "x-system", "x"))
	w.reports(p, operatorv1.ReadyCondition, "True")
	w.hosts[gitlabHost] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	page := "https://" + gitlabHost + packagePath("x", "v1.0.1")
	w.change(p, `{version: v1.0.1, fetchConfig: {selector: null, url: "`+page+`infrastructure-components.yaml"}}`)
	p = w.reconcile(p)
	w.reports(p, operatorv1.ProviderInstalledCondition, "False ComponentsFetchError: ", page+"metadata.yaml", "503 Service Unavailable")
	w.reports(p, operatorv1.ReadyCondition, "True")
	if version := ptr.Deref(p.GetStatus().InstalledVersion, ""); version != "v1.0.0" {
		t.Errorf("version %s is installed", version)
	}

	w.hosts[gitlabHost] = serveFiles("x", "v1.0.1")
	w.Clock.Step(10 * time.Second)
	p = w.reconcile(p)
	w.reports(p, operatorv1.ProviderInstalledCondition, "True")
	w.reports(p, operatorv1.ReadyCondition, "True")
	if version := ptr.Deref(p.GetStatus().InstalledVersion, ""); version != "v1.0.1" {
		t.Errorf("version %s is installed", version)
	}
	if image := w.deployment("x-system", "x").Spec.Template.Spec.Containers[0].Image; image != "registry.example.com/x/controller:v1.0.1" {
		t.Errorf("image %s is not that of the version", image)
	}
	if n := w.requested(packagePath("x", "v1.0.1")); n > 6 {
		t.Errorf("the upgrade made %d requests", n)
	}
}
