package operator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/choose"
)

func TestReferences(t *testing.T) {
	reference := func(providerType clusterctlv1.ProviderType, name, namespace, version string) Reference {
		return Reference{Ref: packages.Ref{Name: name, Version: version}, Type: providerType, Namespace: namespace}
	}
	for _, tc := range []struct {
		reason    string
		selection choose.Selection
		firstRun  bool
		want      []Reference
		err       string
	}{
		{
			reason: "all forms", selection: choose.Selection{Infrastructure: []string{"a", "b:v1.2.3", "c:place", "d:place:v1.2.3", "e::v1.2.3"}},
			want: []Reference{
				reference(clusterctlv1.InfrastructureProviderType, "a", "", ""),
				reference(clusterctlv1.InfrastructureProviderType, "b", "", "v1.2.3"),
				reference(clusterctlv1.InfrastructureProviderType, "c", "place", ""),
				reference(clusterctlv1.InfrastructureProviderType, "d", "place", "v1.2.3"),
				reference(clusterctlv1.InfrastructureProviderType, "e", "", "v1.2.3"),
			},
		},
		{
			reason: "the defaults of a first run, in install order", firstRun: true, selection: choose.Selection{ControlPlane: []string{"-"}, IPAM: []string{"x"}},
			want: []Reference{
				reference(clusterctlv1.CoreProviderType, "cluster-api", "", ""),
				reference(clusterctlv1.BootstrapProviderType, "kubeadm", "", ""),
				reference(clusterctlv1.IPAMProviderType, "x", "", ""),
			},
		},
		{
			reason: "the same twice is one", selection: choose.Selection{Addon: []string{"helm", "helm"}},
			want: []Reference{reference(clusterctlv1.AddonProviderType, "helm", "", "")},
		},
		{
			reason: "a provider cannot have two versions", selection: choose.Selection{Addon: []string{"helm:v1.0.0", "helm:v2.0.0"}},
			err: "--addon: helm is specified twice",
		},
		{
			reason: "neither a namespace nor a version", selection: choose.Selection{Infrastructure: []string{"aws:v2.4"}},
			err: `--infrastructure: provider "aws:v2.4": "v2.4" is neither a namespace nor a version`,
		},
		{
			reason: "no version after the namespace", selection: choose.Selection{Infrastructure: []string{"aws:place:latest"}},
			err: `must have the form name, name:version, name:namespace or name:namespace:version`,
		},
		{
			reason: "the operator needs a core provider", selection: choose.Selection{Core: "-"}, err: "--core -: the core provider is required",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := References(tc.selection, tc.firstRun)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
