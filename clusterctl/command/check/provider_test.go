package check

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
)

// TestCheck runs the command on a release that misses its metadata, and on a good one.
func TestCheck(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "addon-toy", "v1.0.0")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(args ...string) (out, log string, err error) {
		streams, buffers := iostreams.Test()
		cmd := NewProvider(factory.New(streams, func(string) (string, bool) { return "", false }, nil), nil)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append([]string{folder}, args...))
		err = cmd.ExecuteContext(t.Context())
		return buffers.Out.String(), buffers.Err.String(), err
	}
	write("addon-components.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: toy, labels: {cluster.x-k8s.io/provider: addon-toy}}\n")

	const failed = "the provider does not meet the contract (errors: 1, warnings: 1): correct the errors, and run the command again"
	out, _, err := check()
	want := folder + ": error: metadata.yaml is missing: it maps release series to contracts (provider repositories)\n" +
		filepath.Join(folder, "addon-components.yaml") + ": warning: there is no Deployment: each provider is expected to deploy its controllers with one (components YAML)\n"
	if diff := cmp.Diff(want, out); diff != "" || err == nil || err.Error() != failed {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}

	out, log, err := check("-o", "json")
	want = `[
  {
    "severity": "error",
    "file": "FOLDER",
    "rule": "provider repositories",
    "message": "metadata.yaml is missing: it maps release series to contracts"
  },
  {
    "severity": "warning",
    "file": "FOLDER/addon-components.yaml",
    "rule": "components YAML",
    "message": "there is no Deployment: each provider is expected to deploy its controllers with one"
  }
]
`
	if diff := cmp.Diff(want, strings.ReplaceAll(out, folder, "FOLDER")); diff != "" || err == nil || log != "" {
		t.Errorf("%v, %s -want +got:\n%s", err, log, diff)
	}

	write("metadata.yaml", "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries: [{major: 1, minor: 0, contract: v1beta1}]\n")
	if _, log, err := check(); err != nil || log != "The provider meets the contract (warnings: 1)\n" {
		t.Errorf("warnings are no errors, got %v, %s", err, log)
	}
}

// published answers requests to GitHub and GitLab with the files of releases, by host and path.
type published map[string]string

// RoundTrip implements http.RoundTripper.
func (p published) RoundTrip(r *http.Request) (*http.Response, error) {
	body, found := p[r.URL.Host+r.URL.Path]
	response := &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}
	if !found {
		response.StatusCode, response.Status = http.StatusNotFound, "404 Not Found"
	}
	return response, nil
}

// TestCheckURL checks published releases.
func TestCheckURL(t *testing.T) {
	const (
		components = "apiVersion: v1\nkind: Namespace\nmetadata: {name: toy, labels: {cluster.x-k8s.io/provider: addon-toy}}\n"
		metadata   = "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries: [{major: 1, minor: 0, contract: v1beta1}]\n"
		github     = "https://github.com/o/r/releases/v1.0.0/"
		gitlab     = "https://gitlab.example/api/v4/projects/1/packages/generic/p/v1.0.0/"
		deployment = ": warning: there is no Deployment: each provider is expected to deploy its controllers with one (components YAML)\n"
	)
	web := published{
		"api.github.com/repos/o/r/releases/tags/v1.0.0": `{"tag_name": "v1.0.0", "assets": [
			{"id": 1, "name": "addon-components.yaml"}, {"id": 2, "name": "metadata.yaml"}, {"id": 3, "name": "cluster-template.yaml"}, {"id": 4, "name": "program"}]}`,
		"api.github.com/repos/o/r/releases/assets/1": components,
		"api.github.com/repos/o/r/releases/assets/2": metadata,
		"api.github.com/repos/o/r/releases/assets/3": "kind: Namespace\napiVersion: v1\nmetadata: {name: '${NAMESPACE}'}\n---\n" +
			"apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: '${CLUSTER_NAME}', namespace: '${NAMESPACE}'}\nspec: {version: '${KUBERNETES_VERSION}'}\n",
		"gitlab.example/api/v4/projects/1/packages/generic/p/v1.0.0/addon-components.yaml": components,
	}
	tests := []struct {
		reason string
		url    string
		want   string
		err    string
	}{
		{
			reason: "all files of a release on GitHub are checked", url: github + "addon-components.yaml",
			want: github + "addon-components.yaml" + deployment +
				github + "cluster-template.yaml:1: error: Namespace default must not be part of the template: the target namespace must be assumed to exist (workload cluster templates)\n",
			err: "errors: 1, warnings: 1",
		},
		{
			reason: "a package on GitLab has no list of its files", url: gitlab + "addon-components.yaml",
			want: strings.TrimSuffix(gitlab, "/") + ": error: metadata.yaml is missing: it maps release series to contracts (provider repositories)\n" +
				gitlab + "addon-components.yaml" + deployment,
			err: "errors: 1, warnings: 1",
		},
		{reason: "a release must exist", url: "https://github.com/o/r/releases/v1.1.0/addon-components.yaml", err: "o/r has no release v1.1.0"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			streams, buffers := iostreams.Test()
			env := func(name string) (string, bool) { return map[string]string{"GOPROXY": "off"}[name], name == "GOPROXY" }
			cmd := NewProvider(factory.New(streams, env, &http.Client{Transport: web}), nil)
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs([]string{tc.url, "--provider", "addon-toy"})
			err := cmd.ExecuteContext(t.Context())
			if diff := cmp.Diff(tc.want, buffers.Out.String()); diff != "" || err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%v -want +got:\n%s", err, diff)
			}
		})
	}
}
