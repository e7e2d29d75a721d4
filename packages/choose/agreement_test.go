package choose

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/inventory"
)

// withComponents adds an empty file of components to every version of a provider.
func withComponents(t *testing.T, c *catalog.Catalog, name, file string) *catalog.Catalog {
	t.Helper()
	for _, p := range c.Config.Providers {
		if p.Name != name {
			continue
		}
		versions, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(p.URL)), "v*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range versions {
			if err := os.WriteFile(filepath.Join(folder, file), []byte("{apiVersion: v1, kind: Namespace, metadata: {name: toy-system}}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

// managed returns a management cluster with an inventory and other objects.
func managed(t *testing.T, have inventory.Inventory, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := clientgoscheme.Scheme
	if err := clusterctlv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for i := range have {
		objects = append(objects, &have[i])
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// declaredCore is a core provider that the operator has installed.
func declaredCore(version, contract string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"installedVersion": version, "contract": contract}}}
	o.SetGroupVersionKind(inventory.DeclarationKind(clusterctlv1.CoreProviderType))
	o.SetNamespace("cluster-api-system")
	o.SetName("cluster-api")
	return o
}

// All providers implement a contract that the core provider works with, which is installed, or which the same command installs.
func TestContractOfCore(t *testing.T) {
	const (
		conflict = "infrastructure-toy v1.4.0 implements contract v1beta2, but the core provider cluster-api v1.0.0 works with providers for v1beta1: " +
			"choose another version with toy:{version}, or upgrade the core provider first"
		later = "infrastructure-toy v1.4.0 implements contract v1beta2, but the core provider cluster-api v1.5.0 works with providers for v1beta3: " +
			"install a version for contract v1beta3 with a clusterctl that supports it"
		unknown = "warning: cannot find out which contract the core provider cluster-api v1.0.0 implements: "
	)
	repositories := map[string][]string{"cluster-api": {"v1.0.0", "v1.4.0", "v1.5.0"}, "infrastructure-toy": {"v1.0.0", "v1.4.0"}}
	toyOnly := map[string][]string{"infrastructure-toy": {"v1.0.0", "v1.4.0"}}
	for _, tc := range []struct {
		reason       string
		repositories map[string][]string
		core         string
		declared     client.Object
		lenient      bool
		want         string
	}{
		{"the same contract", repositories, "v1.4.0", nil, false, ""},
		{"an older one", repositories, "v1.0.0", nil, false, conflict},
		{"an older one, with --validate=false", repositories, "v1.0.0", nil, true, "warning: " + conflict},
		{"a newer one, which this program does not know", repositories, "v1.5.0", nil, false, later},
		{"this project's works with both, and needs no metadata", toyOnly, "v2.0.0", nil, false, ""},
		{"a core provider without metadata that can be read", toyOnly, "v1.0.0", nil, false, unknown},
		{"a version that the metadata does not have", repositories, "v1.7.0", nil, false, strings.ReplaceAll(unknown, "v1.0.0", "v1.7.0")},
		{"the operator has recorded the contract", toyOnly, "v1.0.0", declaredCore("v1.0.0", "v1beta1"), false, conflict},
		{"it has recorded that of another version", toyOnly, "v1.0.0", declaredCore("v1.4.0", "v1beta2"), false, unknown},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c := withComponents(t, folders(t, tc.repositories), "toy", "infrastructure-components.yaml")
			var objects []client.Object
			if tc.declared != nil {
				objects = append(objects, tc.declared)
			}
			var warnings []error
			p := &InstallPlanner{Catalog: c, Client: managed(t, inventory.Inventory{core(tc.core)}, objects...), Warn: func(err error) { warnings = append(warnings, err) }}
			_, err := p.Plan(t.Context(), InstallOptions{Selection: Selection{Infrastructure: []string{"toy:v1.4.0"}}, Lenient: tc.lenient})
			if err != nil {
				shows(t, "init", tc.want, []string{err.Error()})
			} else {
				shows(t, "init", tc.want, lines("warning: ", warnings...))
			}
			if tc.lenient {
				return
			}
			have := inventory.Inventory{core(tc.core), infrastructure("v1.0.0")}
			declared, err := inventory.ReadDeclared(t.Context(), p.Client)
			if err != nil {
				t.Fatal(err)
			}
			choice, err := UpgradeRequest{Selection: Selection{Infrastructure: []string{"toy:v1.4.0"}}}.Choose(t.Context(), c, have, declared)
			if err != nil {
				shows(t, "upgrade", tc.want, []string{err.Error()})
				return
			}
			var texts []string
			for _, w := range choice.Warnings {
				texts = append(texts, "warning: "+w)
			}
			shows(t, "upgrade", tc.want, texts)
		})
	}
}

// The core provider of the same command counts, and decides about default versions.
func TestContractOfNewCore(t *testing.T) {
	all := map[string][]string{"cluster-api": {"v1.0.0", "v1.4.0", "v1.5.0", "v2.0.0"}, "infrastructure-toy": {"v1.1.0", "v1.4.0"}}
	onlyOld := map[string][]string{"cluster-api": {"v1.0.0"}, "infrastructure-toy": {"v1.1.0", "v1.4.0"}}
	for _, tc := range []struct {
		reason       string
		repositories map[string][]string
		core, toy    string
		want         []string
	}{
		{"a contract that this program does not know", all, "cluster-api:v1.5.0", "toy:v1.1.0", []string{
			"the providers cannot be installed for 2 reasons:",
			"  - cluster-api v1.5.0 implements contract v1beta3, but this clusterctl supports v1beta1 and v1beta2: choose another version with cluster-api:{version}",
			"  - infrastructure-toy v1.1.0 implements contract v1beta1, but the core provider cluster-api v1.5.0 works with providers for v1beta3: " +
				"install a version for contract v1beta3 with a clusterctl that supports it",
		}},
		{"an older core provider", all, "cluster-api:v1.0.0", "toy:v1.4.0", []string{
			"infrastructure-toy v1.4.0 implements contract v1beta2, but the core provider cluster-api v1.0.0 works with providers for v1beta1: " +
				"choose another version with toy:{version}, or upgrade the core provider first",
		}},
		{"the default for an older core provider", all, "cluster-api:v1.0.0", "toy", []string{"cluster-api v1.0.0", "infrastructure-toy v1.1.0"}},
		{"the default for an older core provider that is the default", onlyOld, "", "toy", []string{"cluster-api v1.0.0", "infrastructure-toy v1.1.0"}},
		{"the default for one that implements both", all, "cluster-api:v1.4.0", "toy", []string{"cluster-api v1.4.0", "infrastructure-toy v1.4.0"}},
		{"the default for this project's", all, "cluster-api:v2.0.0", "toy", []string{"cluster-api v2.0.0", "infrastructure-toy v1.4.0"}},
	} {
		c := folders(t, tc.repositories)
		c = withComponents(t, withComponents(t, c, "toy", "infrastructure-components.yaml"), "cluster-api", "core-components.yaml")
		p := &InstallPlanner{Catalog: c, Client: managed(t, nil), Warn: func(err error) { t.Error(err) }}
		plan, err := p.Plan(t.Context(), InstallOptions{Selection: Selection{
			Core: tc.core, Infrastructure: []string{tc.toy}, Bootstrap: []string{"-"}, ControlPlane: []string{"-"},
		}})
		var got []string
		if err != nil {
			got = strings.Split(err.Error(), "\n")
		} else {
			for _, added := range plan.Install {
				got = append(got, added.Provider.ManifestLabel()+" "+added.Version)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}
