package choose

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages/inventory"
)

func entry(t clusterctlv1.ProviderType, name, version string) clusterctlv1.Provider {
	label := clusterctlv1.ManifestLabel(name, t)
	return clusterctlv1.Provider{
		ObjectMeta:   metav1.ObjectMeta{Name: label, Namespace: label + "-system"},
		ProviderName: name, Type: string(t), Version: version,
	}
}

func core(version string) clusterctlv1.Provider {
	return entry(clusterctlv1.CoreProviderType, clusterctlv1.ClusterAPIProviderName, version)
}

func infrastructure(version string) clusterctlv1.Provider {
	return entry(clusterctlv1.InfrastructureProviderType, "toy", version)
}

// releases have series 0.4 of v1alpha4, 1.0 and 1.1 of v1beta1, 1.2 of v1beta2, and 2.0, which is of this project, of v1beta1.
func releases(versions ...string) Releases {
	return Releases{Versions: versions, MetadataVersion: "v9.9.9", Override: "/overrides/metadata.yaml", Metadata: &clusterctlv1.Metadata{ReleaseSeries: []clusterctlv1.ReleaseSeries{
		{Major: 1, Minor: 2, Contract: "v1beta2"},
		{Major: 2, Minor: 0, Contract: "v1beta1"},
		{Major: 0, Minor: 4, Contract: "v1alpha4"},
		{Major: 1, Minor: 0, Contract: "v1beta1"},
		{Major: 1, Minor: 1, Contract: "v1beta1"},
	}}}
}

// planCase is a case of TestPlans.
type planCase struct {
	reason    string
	installed inventory.Inventory
	releases  map[string]Releases
	// want are lines of contract, provider and next version.
	want []string
	err  string
}

func TestPlans(t *testing.T) {
	tests := map[string]planCase{
		"Latest": {
			reason:    "The latest version of the contract is next, in whatever order the repository lists versions.",
			installed: inventory.Inventory{core("v1.0.0"), infrastructure("v1.0.0")},
			releases:  map[string]Releases{"cluster-api": releases("v1.0.1", "v1.1.10", "v1.1.9", "v1.0.0"), "infrastructure-toy": releases("v1.1.0", "v1.0.0")},
			want:      []string{"v1beta1 cluster-api v1.1.10", "v1beta1 infrastructure-toy v1.1.0"},
		},
		"PreRelease": {
			reason:    "Pre-releases are not proposed, but the release is proposed to users of one.",
			installed: inventory.Inventory{core("v1.0.0"), infrastructure("v1.1.0-rc.1")},
			releases:  map[string]Releases{"cluster-api": releases("v1.1.0-beta.0", "v1.0.0"), "infrastructure-toy": releases("v1.1.0", "v1.1.0-rc.1", "v1.1.1-alpha.0")},
			want:      []string{"v1beta1 cluster-api ", "v1beta1 infrastructure-toy v1.1.0"},
		},
		"UpToDate": {
			reason:    "A plan for the present contract is always shown.",
			installed: inventory.Inventory{core("v1.1.0")},
			releases:  map[string]Releases{"cluster-api": releases("v1.1.0", "v1.0.0")},
			want:      []string{"v1beta1 cluster-api "},
		},
		"NoSeries": {
			reason:    "A newer version without series is not considered: its contract is unknown.",
			installed: inventory.Inventory{core("v1.0.0")},
			releases:  map[string]Releases{"cluster-api": releases("v1.7.0", "v1.1.0", "v1.0.0", "v1.8.0-rc.0")},
			want:      []string{"v1beta1 cluster-api v1.1.0 skips v1.7.0,v1.8.0-rc.0"},
		},
		"InstalledWithoutSeries": {
			reason:    "The contract of an installed version must be known. It is the problem of that provider alone.",
			installed: inventory.Inventory{core("v1.0.0"), infrastructure("v1.5.0")},
			releases:  map[string]Releases{"cluster-api": releases("v1.1.0", "v1.0.0"), "infrastructure-toy": releases("v1.5.0")},
			want: []string{"v1beta1 cluster-api v1.1.0", "v1beta1 infrastructure-toy  (metadata.yaml of infrastructure-toy v9.9.9, the latest version that has one, has no release series 1.5, " +
				"which the installed version v1.5.0 needs: the provider must add it to releaseSeries, or you can put a corrected file at /overrides/metadata.yaml)"},
		},
		"Unreadable": {
			reason:    "A repository that cannot be read does not decide about others, except about another contract.",
			installed: inventory.Inventory{core("v1.0.0"), infrastructure("v1.0.0")},
			releases:  map[string]Releases{"cluster-api": releases("v1.2.0", "v1.1.0", "v1.0.0"), "infrastructure-toy": {Err: errors.New("not found")}},
			want:      []string{"v1beta1 cluster-api v1.1.0", "v1beta1 infrastructure-toy  (not found)"},
		},
		"UnreadableCore": {
			reason:    "Not even that of the core provider.",
			installed: inventory.Inventory{core("v1.0.0"), infrastructure("v1.0.0")},
			releases:  map[string]Releases{"cluster-api": {Err: errors.New("not found")}, "infrastructure-toy": releases("v1.1.0", "v1.0.0")},
			want:      []string{"v1beta1 cluster-api  (not found)", "v1beta1 infrastructure-toy v1.1.0"},
		},
		"OldWithoutSeries": {
			reason:    "Versions older than the installed one do not matter.",
			installed: inventory.Inventory{core("v1.0.0")},
			releases:  map[string]Releases{"cluster-api": releases("v0.3.0", "v1.0.0")},
			want:      []string{"v1beta1 cluster-api "},
		},
		"TwoCores": {
			reason:    "Two core providers cannot be upgraded.",
			installed: inventory.Inventory{core("v1.0.0"), core("v1.1.0")},
			err:       "must have one core provider, but this one has 2",
		},
	}
	for name, tc := range tests {
		t.Run(name, tc.check)
	}
}

func TestPlansOfContracts(t *testing.T) {
	tests := map[string]planCase{
		"NextContract": {
			reason:    "A later contract is shown if all providers have it.",
			installed: inventory.Inventory{core("v1.0.0"), infrastructure("v1.0.0")},
			releases:  map[string]Releases{"cluster-api": releases("v1.2.0", "v1.0.0"), "infrastructure-toy": releases("v1.2.0", "v1.0.0")},
			want:      []string{"v1beta1 cluster-api ", "v1beta1 infrastructure-toy ", "v1beta2 cluster-api v1.2.0", "v1beta2 infrastructure-toy v1.2.0"},
		},
		"IncompleteContract": {
			reason:    "A later contract is not shown if the core provider does not have it.",
			installed: inventory.Inventory{core("v1.0.0"), infrastructure("v1.0.0")},
			releases:  map[string]Releases{"cluster-api": releases("v1.0.0"), "infrastructure-toy": releases("v1.2.0", "v1.1.0", "v1.0.0")},
			want:      []string{"v1beta1 cluster-api ", "v1beta1 infrastructure-toy v1.1.0"},
		},
		"OlderProvider": {
			reason:    "A core provider for v1beta2 works with providers for v1beta1, new or old.",
			installed: inventory.Inventory{core("v1.0.0"), infrastructure("v1.1.0"), entry(clusterctlv1.InfrastructureProviderType, "puppet", "v1.0.0")},
			releases: map[string]Releases{"cluster-api": releases("v1.2.0", "v1.0.0"), "infrastructure-toy": releases("v1.1.0"),
				"infrastructure-puppet": releases("v1.1.0", "v1.0.0")},
			want: []string{"v1beta1 cluster-api ", "v1beta1 infrastructure-puppet v1.1.0", "v1beta1 infrastructure-toy ",
				"v1beta2 cluster-api v1.2.0", "v1beta2 infrastructure-puppet v1.1.0", "v1beta2 infrastructure-toy "},
		},
		"Ours": {
			reason:    "This project's core provider implements both contracts, whatever its metadata names.",
			installed: inventory.Inventory{core("v1.0.0"), infrastructure("v1.0.0")},
			releases:  map[string]Releases{"cluster-api": releases("v2.0.0", "v1.2.0", "v1.0.0"), "infrastructure-toy": releases("v1.2.0", "v1.1.0", "v1.0.0")},
			want:      []string{"v1beta1 cluster-api v2.0.0", "v1beta1 infrastructure-toy v1.1.0", "v1beta2 cluster-api v2.0.0", "v1beta2 infrastructure-toy v1.2.0"},
		},
		"OursAlready": {
			reason:    "Its users get to providers for v1beta2 without a newer core provider.",
			installed: inventory.Inventory{core("v2.0.0"), infrastructure("v1.1.0")},
			releases:  map[string]Releases{"cluster-api": releases("v2.0.0"), "infrastructure-toy": releases("v1.2.0", "v1.1.0")},
			want:      []string{"v1beta1 cluster-api ", "v1beta1 infrastructure-toy ", "v1beta2 cluster-api ", "v1beta2 infrastructure-toy v1.2.0"},
		},
		"FromNewerContract": {
			reason:    "Whose core provider implements v1beta2 gets to this project's with that contract.",
			installed: inventory.Inventory{core("v1.2.0"), infrastructure("v1.2.0")},
			releases:  map[string]Releases{"cluster-api": releases("v2.0.0", "v1.2.0"), "infrastructure-toy": releases("v1.2.0")},
			want:      []string{"v1beta2 cluster-api v2.0.0", "v1beta2 infrastructure-toy "},
		},
		"FromOldContract": {
			reason:    "From an older contract, the present one and later ones are shown.",
			installed: inventory.Inventory{core("v0.4.0")},
			releases:  map[string]Releases{"cluster-api": releases("v0.4.8", "v1.1.0", "v0.4.0")},
			want:      []string{"v1alpha4 cluster-api v0.4.8", "v1beta1 cluster-api v1.1.0"},
		},
	}
	for name, tc := range tests {
		t.Run(name, tc.check)
	}
}

func (tc planCase) check(t *testing.T) {
	plans, err := ContractPlans(tc.installed, tc.releases)
	if tc.err != "" {
		if err == nil || !strings.Contains(err.Error(), tc.err) {
			t.Fatalf("%s: want an error with %q, got %v", tc.reason, tc.err, err)
		}
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", tc.reason, err)
	}
	var got []string
	for _, p := range plans {
		for _, item := range p.Items {
			line := p.Contract + " " + item.Installed.Name + " " + item.Next
			if item.Problem != nil {
				line += " (" + item.Problem.Error() + ")"
			}
			if len(item.Skipped) > 0 {
				line += " skips " + strings.Join(item.Skipped, ",")
			}
			got = append(got, line)
		}
	}
	if diff := cmp.Diff(tc.want, got); diff != "" {
		t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
	}
}
