package provider

import (
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
		cmd := NewCmd(factory.New(streams, func(string) (string, bool) { return "", false }, nil), nil)
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
