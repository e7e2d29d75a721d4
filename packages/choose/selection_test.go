package choose

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/inventory"
)

func TestItems(t *testing.T) {
	tests := map[string]struct {
		reason    string
		selection Selection
		firstRun  bool
		want      []string
		err       string
	}{
		"First":    {reason: "The first run adds the default providers.", selection: Selection{Infrastructure: []string{"aws:v1.0.0"}}, firstRun: true, want: []string{"cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm", "infrastructure-aws:v1.0.0"}},
		"Later":    {reason: "Later runs add the requested providers.", selection: Selection{Addon: []string{"helm"}, IPAM: []string{"in-cluster"}}, want: []string{"ipam-in-cluster", "addon-helm"}},
		"Other":    {reason: "Requested providers replace the defaults.", selection: Selection{Core: "cluster-api:v1.7.0", Bootstrap: []string{"talos"}}, firstRun: true, want: []string{"cluster-api:v1.7.0", "bootstrap-talos", "control-plane-kubeadm"}},
		"None":     {reason: "A dash skips a type.", selection: Selection{Bootstrap: []string{"-"}, ControlPlane: []string{"-"}}, firstRun: true, want: []string{"cluster-api"}},
		"NoCore":   {reason: "The core provider cannot be skipped.", selection: Selection{Core: "-"}, firstRun: true, err: "the core provider is required"},
		"Twice":    {reason: "Duplicates are removed.", selection: Selection{Infrastructure: []string{"aws", "aws"}}, want: []string{"infrastructure-aws"}},
		"Versions": {reason: "Two versions of a provider are rejected.", selection: Selection{Infrastructure: []string{"aws:v1.0.0", "aws"}}, err: "specifies aws twice, as aws:v1.0.0 and aws"},
		"Bad":      {reason: "The error names the flag.", selection: Selection{ControlPlane: []string{"x:y"}}, err: `--control-plane: provider "x:y": version "y" is not`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			items, err := tc.selection.Items(tc.firstRun)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("%s\nItems(): want error %q, got: %v", tc.reason, tc.err, err)
			}
			var got []string
			for _, i := range items {
				got = append(got, strings.TrimSuffix(i.Label()+":"+i.Ref.Version, ":"))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nItems(): -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func made(t clusterctlv1.ProviderType, name string, objects ...unstructured.Unstructured) *components.Components {
	return &components.Components{Provider: packages.Provider{Name: name, Type: t}, Version: "v2.0.0", TargetNamespace: "ns", Objects: objects}
}

func TestValidate(t *testing.T) {
	core := clusterctlv1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "capi-system", Name: "cluster-api"}, ProviderName: "cluster-api", Type: "CoreProvider", Version: "v1.0.0"}
	crd := unstructured.Unstructured{Object: map[string]any{
		"kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "odd"},
		"spec": map[string]any{"group": "x.io", "names": map[string]any{"kind": "Thing"}},
	}}
	safe := *crd.DeepCopy()
	safe.SetAnnotations(map[string]string{clusterctlv1.SkipCRDNamePreflightCheckAnnotation: ""})
	tests := map[string]struct {
		reason    string
		added     []*components.Components
		installed inventory.Inventory
		want      []string
	}{
		"Fine":    {reason: "A first core provider and others fit.", added: []*components.Components{made(clusterctlv1.CoreProviderType, "cluster-api"), made(clusterctlv1.AddonProviderType, "helm")}},
		"NoCore":  {reason: "A core provider is required.", added: []*components.Components{made(clusterctlv1.AddonProviderType, "helm")}, want: []string{"a management cluster must have one core provider, but this one would have 0"}},
		"Again":   {reason: "A second instance is rejected, and the error shows how to upgrade.", added: []*components.Components{made(clusterctlv1.CoreProviderType, "cluster-api")}, installed: inventory.Inventory{core}, want: []string{"cluster-api is already installed in version v1.0.0 in namespace capi-system: to change its version run `clusterctl upgrade apply --core cluster-api:v2.0.0`"}},
		"Skipped": {reason: "The annotation skips that check.", added: []*components.Components{made(clusterctlv1.AddonProviderType, "helm", safe)}, installed: inventory.Inventory{core}},
		"CRDName": {reason: "CRDs that contract lookups cannot find are rejected.", added: []*components.Components{made(clusterctlv1.AddonProviderType, "helm", crd)}, installed: inventory.Inventory{core}, want: []string{"addon-helm v2.0.0: CustomResourceDefinition odd of kind Thing must be named things.x.io; if that is known to be safe, the provider can add the annotation clusterctl.cluster.x-k8s.io/skip-crd-name-preflight-check"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range Validate(tc.added, tc.installed) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nValidate(): -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
