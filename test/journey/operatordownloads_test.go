package journey

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// brokenDownload is a way in which a server fails, and what the condition says.
type brokenDownload struct {
	reason  string
	respond http.HandlerFunc
	words   []string
}

// tooLarge is more than what a download may be.
const tooLarge = 65 << 20

func brokenDownloads(isOver <-chan struct{}) []brokenDownload {
	return []brokenDownload{
		{"errors", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
			[]string{"500 Internal Server Error", "try again later"}},
		{"nothing", http.NotFound, []string{"404 Not Found", "correct spec.version or spec.fetchConfig"}},
		{"credentials", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
			[]string{"401 Unauthorized", "store the release in a ConfigMap, and set spec.fetchConfig.selector"}},
		{"cut", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, "apiVersion: ")
		}, []string{"the download ended after 12 bytes", noNetwork}},
		{"circle", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) },
			[]string{"too many redirects"}},
		{"large", func(w http.ResponseWriter, _ *http.Request) {
			for chunk, n := make([]byte, 1<<20), 0; n < tooLarge; n += len(chunk) {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, []string{"the file is larger than 64Mi"}},
		{"slow", func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-isOver:
			}
		}, []string{"Client.Timeout exceeded", noNetwork}},
	}
}

// packagePath is where a package of a version is, for GitLab.
func packagePath(name, version string) string {
	return "/api/v4/projects/p/packages/generic/" + name + "/" + version + "/"
}

// theDownloads lets a server fail in every way, and counts the attempts; then it fails for an upgrade, and works again.
func testDownloads(o *operatorCluster, c client.Client, n *fakeNetwork) {
	isOver := make(chan struct{})
	defer close(isOver)
	rows := brokenDownloads(isOver)
	n.set(gitlabHost, func(w http.ResponseWriter, r *http.Request) {
		for _, b := range rows {
			if strings.Contains(r.URL.Path, "/"+b.reason+"/") {
				b.respond(w, r)
			}
		}
	})
	o.kubectl("", "create", "namespace", "downloads")
	const version = "v1.0.0"
	url := func(b brokenDownload) string { return "https://" + gitlabHost + packagePath(b.reason, version) }
	for _, b := range rows {
		o.kubectl(fmt.Sprintf(`
apiVersion: operator.cluster.x-k8s.io/v1alpha2
kind: InfrastructureProvider
metadata: {name: %s, namespace: downloads}
spec: {version: %s, fetchConfig: {url: "%sinfrastructure-components.yaml"}}
`, b.reason, version, url(b)), "apply", "-f", "-")
	}
	began := time.Now()
	for _, b := range rows {
		o.t.Run(b.reason, func(t *testing.T) {
			waitForCondition(t, c, "InfrastructureProvider", "downloads", b.reason, "ProviderInstalled", append([]string{"False ComponentsFetchError: ", url(b)}, b.words...)...)
		})
	}
	testenv.Eventually(o.t, "it is tried again", func() error {
		if got := n.requested(packagePath("errors", version)); got < 2 {
			return fmt.Errorf("%d requests", got)
		}
		return nil
	})
	if passed := time.Since(began); passed < 5*time.Second {
		o.t.Errorf("a failed download is tried again after %s", passed)
	}
	for _, b := range rows {
		// After 10 seconds, after 20 more, and so on; the slowest attempt takes half a minute.
		if got, most := n.requested(packagePath(b.reason, version)), 2+int(time.Since(began)/(20*time.Second)); b.reason != "circle" && got > most {
			o.t.Errorf("%s: %d requests in %s", b.reason, got, time.Since(began).Round(time.Second))
		}
	}
	o.kubectl("", "delete", "infrastructureproviders", "--all", "-n", "downloads")
}

// theInterruptedUpgrade lets a download fail for an upgrade: the installed version serves meanwhile, and the upgrade continues when the server works.
func testInterruptedUpgrade(o *operatorCluster, c client.Client, n *fakeNetwork) {
	p := declaredProviders()[3]
	file := o.release(p.label, p.file)
	components, err := os.ReadFile(file)
	testenv.Must(o.t, err)
	metadata, err := os.ReadFile(filepath.Join(filepath.Dir(file), "metadata.yaml"))
	testenv.Must(o.t, err)
	n.set(gitlabHost, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	page := "https://" + gitlabHost + packagePath("in-memory", "v2.0.1")
	o.patch(p, `{"version": "v2.0.1", "fetchConfig": {"url": "`+page+p.file+`"}}`)
	waitForCondition(o.t, c, p.kind, p.namespace, p.name, "ProviderInstalled", "False ComponentsFetchError: ", page+"metadata.yaml", "503 Service Unavailable")
	waitForCondition(o.t, c, p.kind, p.namespace, p.name, "Ready", "True")
	if installed := o.kubectl("", "get", p.object(), "-n", p.namespace, "-o", "jsonpath={.status.installedVersion}"); installed != "v2.0.0" {
		o.t.Errorf("version %s is installed", installed)
	}
	o.kubectl("{apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryMachineTemplate, metadata: {name: x, namespace: default}, spec: {template: {spec: {}}}}",
		"create", "--dry-run=server", "-f", "-")

	n.set(gitlabHost, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "metadata.yaml") {
			_, _ = w.Write(metadata) // A client that is gone notices itself.
			return
		}
		_, _ = w.Write(components)
	})
	o.installed(p, "v2.0.1")
	waitForCondition(o.t, c, p.kind, p.namespace, p.name, "ProviderInstalled", "True")
	if got := n.requested(packagePath("in-memory", "v2.0.1")); got > 6 {
		o.t.Errorf("the upgrade made %d requests", got)
	}
}
