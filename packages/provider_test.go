package packages

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
)

func TestDefaultsAreValid(t *testing.T) {
	seen := map[string]bool{}
	list := Defaults()
	for _, p := range list {
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", p.ManifestLabel(), err)
		}
		if seen[p.ManifestLabel()] {
			t.Errorf("%s is listed twice", p.ManifestLabel())
		}
		seen[p.ManifestLabel()] = true
	}
	want := Provider{Name: "docker", Type: clusterctlv1.InfrastructureProviderType, URL: "https://github.com/kubernetes-sigs/cluster-api/releases/latest/infrastructure-components-development.yaml"}
	got, err := Find(list, clusterctlv1.InfrastructureProviderType, "docker")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Find(docker): -want +got:\n%s", diff)
	}
	if list[0].Name != clusterctlv1.ClusterAPIProviderName {
		t.Errorf("the core provider must be listed first, got %s", list[0].Name)
	}
	// The labels that the provider contract documents.
	for label := range strings.FieldsSeq(`cluster-api bootstrap-kubeadm bootstrap-kubekey-k3s control-plane-kubeadm
		control-plane-kubekey-k3s control-plane-nested infrastructure-aws infrastructure-byoh infrastructure-cloudstack
		infrastructure-docker infrastructure-digitalocean infrastructure-gcp infrastructure-hetzner infrastructure-ibmcloud
		infrastructure-kubekey infrastructure-kubevirt infrastructure-metal3 infrastructure-nested infrastructure-openstack
		infrastructure-oci infrastructure-packet infrastructure-vsphere infrastructure-vcluster infrastructure-vcd
		infrastructure-nutanix infrastructure-azure infrastructure-outscale`) {
		if !seen[label] {
			t.Errorf("no default provider has the documented label %s", label)
		}
	}
}

func TestFindSuggests(t *testing.T) {
	tests := map[string]struct {
		reason string
		t      clusterctlv1.ProviderType
		name   string
		want   string
	}{
		"Typo": {
			reason: "A similar name is suggested.",
			t:      clusterctlv1.InfrastructureProviderType, name: "dokcer", want: `did you mean "docker"?`,
		},
		"OtherType": {
			reason: "The name of another type's provider is suggested with that type's flag.",
			t:      clusterctlv1.InfrastructureProviderType, name: "kubeadm", want: `use --bootstrap kubeadm`,
		},
		"Unknown": {
			reason: "Without similar names the error refers to the configuration file.",
			t:      clusterctlv1.InfrastructureProviderType, name: "zzzzzzzz", want: "under the key providers of the configuration file",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Find(Defaults(), tc.t, tc.name)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nFind(): want an error containing %q, got: %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestParseRef(t *testing.T) {
	tests := map[string]struct {
		reason string
		in     string
		want   Ref
		err    string
	}{
		"Name":       {reason: "A name alone leaves the version open.", in: "aws", want: Ref{Name: "aws"}},
		"Upper":      {reason: "Names are compared in lower case.", in: "AWS", want: Ref{Name: "aws"}},
		"Versioned":  {reason: "Name and version are split at the colon.", in: "aws:v1.2.3-beta.1", want: Ref{Name: "aws", Version: "v1.2.3-beta.1"}},
		"BadVersion": {reason: "The error names an invalid version.", in: "aws:1.x", err: `version "1.x" is not a semantic version`},
		"NoVersion":  {reason: "A colon requires a version.", in: "aws:", err: `version "" is not a semantic version`},
		"BadName":    {reason: "An invalid name is rejected.", in: "a_b", err: `"a_b" is not a provider name`},
		"Empty":      {reason: "An empty reference is rejected.", in: "", err: "is not a provider name"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseRef(tc.in)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("%s\nParseRef(): want error %q, got: %v", tc.reason, tc.err, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nParseRef(): -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		reason string
		p      Provider
		err    string
	}{
		"Good":      {reason: "A DNS name and a known type are fine.", p: Provider{Name: "my.infra", Type: clusterctlv1.InfrastructureProviderType}},
		"NoName":    {reason: "A provider must have a name.", p: Provider{Type: clusterctlv1.InfrastructureProviderType}, err: "name is empty"},
		"BadName":   {reason: "The name becomes object names.", p: Provider{Name: "My_Infra", Type: clusterctlv1.InfrastructureProviderType}, err: `name "My_Infra"`},
		"BadType":   {reason: "The known types are listed.", p: Provider{Name: "x", Type: "Infra"}, err: "use one of CoreProvider, BootstrapProvider"},
		"CoreName":  {reason: "Only cluster-api is a core provider.", p: Provider{Name: "x", Type: clusterctlv1.CoreProviderType}, err: "do not match"},
		"CoreTaken": {reason: "Only a core provider is called cluster-api.", p: Provider{Name: clusterctlv1.ClusterAPIProviderName, Type: clusterctlv1.AddonProviderType}, err: "do not match"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := tc.p.Validate()
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s\nValidate(): want error %q, got: %v", tc.reason, tc.err, err)
			}
		})
	}
}

// TestDefaults pins the documented providers, in the order in which they are listed.
func TestDefaults(t *testing.T) {
	want, err := os.ReadFile("testdata/defaults.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, p := range Defaults() {
		fmt.Fprintln(&got, p.Name, p.Type, p.URL)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
