package choose

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/repository"
)

// folders returns a catalog of local repositories: versions by label; those that end in "-" have no metadata, as a tag before its
// release has no files. A repository without versions is a folder that does not exist.
func folders(t *testing.T, versions map[string][]string) *catalog.Catalog {
	t.Helper()
	root := t.TempDir()
	conf := config.Default(func(string) (string, bool) { return "", false })
	conf.OverridesFolder = filepath.Join(root, "overrides")
	conf.Providers = []packages.Provider{
		{Name: clusterctlv1.ClusterAPIProviderName, Type: clusterctlv1.CoreProviderType, URL: root + "/cluster-api/latest/core-components.yaml"},
		{Name: "toy", Type: clusterctlv1.InfrastructureProviderType, URL: root + "/infrastructure-toy/latest/infrastructure-components.yaml"},
	}
	for label, list := range versions {
		for _, version := range list {
			version, bare := strings.CutSuffix(version, "-")
			folder := filepath.Join(root, label, version)
			if err := os.MkdirAll(folder, 0o750); err != nil {
				t.Fatal(err)
			}
			if bare {
				continue
			}
			metadata := "releaseSeries:\n" // Without kind, as many providers have it.
			for minor := range 3 {
				metadata += fmt.Sprintf("- {major: 1, minor: %d, contract: v1beta1}\n", minor)
			}
			metadata += "- {major: 1, minor: 4, contract: v1beta2}\n- {major: 1, minor: 5, contract: v1beta3}\n- {major: 2, minor: 0, contract: v1beta1}\n"
			if err := os.WriteFile(filepath.Join(folder, "metadata.yaml"), []byte(metadata), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return &catalog.Catalog{Config: conf, Store: repository.NewStore(repository.Options{})}
}

// One bad repository does not decide about all providers.
func TestChoose(t *testing.T) {
	both := inventory.Inventory{core("v1.0.0"), infrastructure("v1.0.0")}
	all := UpgradeRequest{Contract: "v1beta1"}
	toy := UpgradeRequest{Selection: Selection{Infrastructure: []string{"toy:v1.1.0"}}}
	coreOnly := UpgradeRequest{Selection: Selection{Core: "cluster-api:v1.1.0"}}
	tests := map[string]struct {
		reason       string
		repositories map[string][]string
		request      UpgradeRequest
		want         []string
	}{
		"Tags": {
			reason: "Versions without files are not proposed, whether or not their series is known.", request: all,
			repositories: map[string][]string{"cluster-api": {"v1.0.0", "v1.1.0", "v1.1.1-", "v1.3.0-rc.0-", "v1.3.0-"}, "infrastructure-toy": {"v1.0.0", "v1.2.0-"}},
			want:         []string{"cluster-api v1.1.0"},
		},
		"ManyTags": {
			reason: "So many pre-releases without a release do not hide the releases.", request: all,
			repositories: map[string][]string{"cluster-api": {"v1.0.0", "v1.1.0", "v1.2.0-a.1-", "v1.2.0-a.2-", "v1.2.0-a.3-", "v1.2.0-a.4-", "v1.2.0-a.5-", "v1.2.0-a.6-"}, "infrastructure-toy": {"v1.0.0"}},
			want:         []string{"cluster-api v1.1.0"},
		},
		"OlderContract": {
			reason: "The latest version of the contract has no files, although that of the next contract has.", request: all,
			repositories: map[string][]string{"cluster-api": {"v1.0.0", "v1.1.0", "v1.2.0-", "v1.4.0"}, "infrastructure-toy": {"v1.0.0", "v1.4.0"}},
			want:         []string{"cluster-api v1.1.0"},
		},
		"Gone": {
			reason: "What can be upgraded is; the error is about the rest.", request: all,
			repositories: map[string][]string{"cluster-api": {"v1.0.0", "v1.1.0"}},
			want:         []string{"cluster-api v1.1.0", "left: infrastructure-toy stays at v1.0.0: cannot list the versions"},
		},
		"NoMetadata": {
			reason: "A repository without any metadata is that provider's problem.", request: all,
			repositories: map[string][]string{"cluster-api": {"v1.0.0-", "v1.1.0-"}, "infrastructure-toy": {"v1.0.0", "v1.1.0"}},
			want:         []string{"infrastructure-toy v1.1.0", "left: cluster-api stays at v1.0.0: none of the latest versions of cluster-api (v1.1.0, v1.0.0)"},
		},
		"Skipped": {
			reason: "A pre-release without series is skipped with a warning.", request: all,
			repositories: map[string][]string{"cluster-api": {"v1.0.0", "v1.1.0", "v1.9.0-rc.0"}, "infrastructure-toy": {"v1.0.0"}},
			want:         []string{"cluster-api v1.1.0", "warning: not considering v1.9.0-rc.0 of cluster-api"},
		},
		"Named": {
			reason: "A selected provider does not depend on the repository of any other, but it is said what is unknown.", request: toy,
			repositories: map[string][]string{"infrastructure-toy": {"v1.0.0", "v1.1.0"}},
			want:         []string{"infrastructure-toy v1.1.0", "warning: cannot find out which contract the core provider cluster-api v1.0.0 implements"},
		},
		"NamedCore": {
			reason: "Nor does the core provider, but it is said what is unknown.", request: coreOnly,
			repositories: map[string][]string{"cluster-api": {"v1.0.0", "v1.1.0"}},
			want:         []string{"cluster-api v1.1.0", "warning: cannot find out whether infrastructure-toy v1.0.0 works with the core provider v1.1.0"},
		},
		"Both": {
			reason: "The latest versions of the newer contract.", request: UpgradeRequest{Contract: "v1beta2"},
			repositories: map[string][]string{"cluster-api": {"v1.0.0", "v1.4.0", "v2.0.0"}, "infrastructure-toy": {"v1.0.0", "v1.1.0", "v1.4.0"}},
			want:         []string{"cluster-api v2.0.0", "infrastructure-toy v1.4.0"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			choice, err := tc.request.Choose(t.Context(), folders(t, tc.repositories), both, nil)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			var got []string
			for _, w := range choice.Upgrade {
				got = append(got, w.Installed.Name+" "+w.Version)
			}
			for _, e := range choice.Left {
				got = append(got, "left: "+e.Error())
			}
			for _, w := range choice.Warnings {
				got = append(got, "warning: "+w)
			}
			for i := range got { // Messages of the file system, and paths, follow.
				if i < len(tc.want) && strings.Contains(got[i], ": ") && strings.HasPrefix(got[i], tc.want[i]) {
					got[i] = tc.want[i]
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
