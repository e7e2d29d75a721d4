package operator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// releases returns a catalog with releases of the operator.
func releases(t *testing.T, versions ...string) *catalog.Catalog {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "cluster-api")
	for _, version := range versions {
		dir := filepath.Join(folder, version)
		testenv.Must(t, os.MkdirAll(dir, 0o700),
			os.WriteFile(filepath.Join(dir, "metadata.yaml"), []byte("apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n"+
				"- {major: 1, minor: 9, contract: v1beta1}\n- {major: 2, minor: 0, contract: v1beta1}\n- {major: 3, minor: 0, contract: v1beta3}\n"), 0o600),
			os.WriteFile(filepath.Join(dir, "core-components.yaml"), []byte("{}"), 0o600),
			os.WriteFile(filepath.Join(dir, manifestsFile), []byte("{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: n}}"), 0o600))
	}
	p := packages.Provider{Name: "cluster-api", Type: clusterctlv1.CoreProviderType, URL: filepath.Join(folder, "latest", "core-components.yaml")}
	return &catalog.Catalog{Config: &config.Config{Providers: []packages.Provider{p}}, Store: repository.NewStore(repository.Options{})}
}

// TestNext: an operator whose contract this clusterctl does not support is refused, and one of an older minor version.
func TestNext(t *testing.T) {
	all := releases(t, "v1.9.0", "v2.0.0", "v2.0.1", "v3.0.0")
	for _, tc := range []struct{ reason, have, version, want, failure string }{
		{"the latest of the contract", "v2.0.0", "", "v2.0.1", ""},
		{"it is installed", "v2.0.1", "", "", ""},
		{"a newer one is installed", "v2.1.0", "", "", ""},
		{"an unknown version is replaced", unknownVersion, "", "v2.0.1", ""},
		{"a patch release back", "v2.0.1", "v2.0.0", "v2.0.0", ""},
		{"another contract", "v2.0.1", "v3.0.0", "", "this clusterctl cannot install the operator v3.0.0: use the clusterctl of that release: "},
		{"an older minor version", "v2.0.1", "v1.9.0", "", "the operator v1.9.0 is of an older minor version than the installed v2.0.1: downgrades are not supported"},
		{"an older major version", "v3.0.0", "v2.0.0", "", "downgrades are not supported"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			next, err := Next(t.Context(), all, &Installed{Namespace: "n", Version: tc.have}, tc.version)
			if tc.failure != "" {
				if err == nil || !strings.Contains(err.Error(), tc.failure) {
					t.Errorf("got %v, want %q", err, tc.failure)
				}
				return
			}
			testenv.Must(t, err)
			got := ""
			if next != nil {
				got = next.Version
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestUnmatched(t *testing.T) {
	for _, tc := range []struct {
		operator, clusterctl string
		want                 bool
	}{
		{"v2.0.1", "v2.0.0", false}, {"v2.1.0", "v2.0.5", true}, {"v3.0.0", "v2.0.0", true}, {"v1.9.0", "v2.0.0", false},
		{unknownVersion, "v2.0.0", false}, {"v3.0.0", "", false},
	} {
		if got := (&Installed{Version: tc.operator}).Unmatched(tc.clusterctl) != ""; got != tc.want {
			t.Errorf("operator %s, clusterctl %s: got %t", tc.operator, tc.clusterctl, got)
		}
	}
}
