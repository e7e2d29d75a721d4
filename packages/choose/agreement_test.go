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

// All providers implement the contract of the core provider that is installed, or that the same command installs.
func TestContractOfCore(t *testing.T) {
	const (
		begin    = "infrastructure-toy v1.1.0 implements contract v1beta1, but the core provider cluster-api v2.0.0 implements v1beta2"
		conflict = begin + ", and all providers must implement the contract of the core provider: install a version for contract v1beta2 with a clusterctl that supports it"
		unknown  = "warning: cannot find out which contract the core provider cluster-api v1.0.0 implements: "
	)
	repositories := map[string][]string{"cluster-api": {"v1.0.0", "v2.0.0"}, "infrastructure-toy": {"v1.0.0", "v1.1.0"}}
	toyOnly := map[string][]string{"infrastructure-toy": {"v1.0.0", "v1.1.0"}}
	for _, tc := range []struct {
		reason       string
		repositories map[string][]string
		core         string
		declared     client.Object
		lenient      bool
		want         string
	}{
		{"the same contract", repositories, "v1.0.0", nil, false, ""},
		{"another one", repositories, "v2.0.0", nil, false, conflict},
		{"another one, with --validate=false", repositories, "v2.0.0", nil, true, "warning: " + conflict},
		{"a core provider without metadata that can be read", toyOnly, "v1.0.0", nil, false, unknown},
		{"a version that the metadata does not have", repositories, "v1.7.0", nil, false, strings.ReplaceAll(unknown, "v1.0.0", "v1.7.0")},
		{"the operator has recorded the contract", toyOnly, "v2.0.0", declaredCore("v2.0.0", "v1beta2"), false, conflict},
		{"it has recorded that of another version", toyOnly, "v1.0.0", declaredCore("v2.0.0", "v1beta2"), false, unknown},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c := withComponents(t, folders(t, tc.repositories), "toy", "infrastructure-components.yaml")
			var objects []client.Object
			if tc.declared != nil {
				objects = append(objects, tc.declared)
			}
			var warnings []error
			p := &InstallPlanner{Catalog: c, Client: managed(t, inventory.Inventory{core(tc.core)}, objects...), Warn: func(err error) { warnings = append(warnings, err) }}
			_, err := p.Plan(t.Context(), InstallOptions{Selection: Selection{Infrastructure: []string{"toy:v1.1.0"}}, Lenient: tc.lenient})
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
			choice, err := UpgradeRequest{Selection: Selection{Infrastructure: []string{"toy:v1.1.0"}}}.Choose(t.Context(), c, have, declared)
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

// The core provider of the same command counts.
func TestContractOfNewCore(t *testing.T) {
	c := folders(t, map[string][]string{"cluster-api": {"v2.0.0"}, "infrastructure-toy": {"v1.1.0"}})
	c = withComponents(t, withComponents(t, c, "toy", "infrastructure-components.yaml"), "cluster-api", "core-components.yaml")
	p := &InstallPlanner{Catalog: c, Client: managed(t, nil), Warn: func(err error) { t.Error(err) }}
	_, err := p.Plan(t.Context(), InstallOptions{Selection: Selection{
		Core: "cluster-api:v2.0.0", Infrastructure: []string{"toy:v1.1.0"}, Bootstrap: []string{"-"}, ControlPlane: []string{"-"},
	}})
	if err == nil {
		t.Fatal("it must fail")
	}
	want := []string{
		"the providers cannot be installed for 2 reasons:",
		"  - cluster-api v2.0.0 implements contract v1beta2, but this clusterctl supports v1beta1: choose another version with cluster-api:{version}",
		"  - infrastructure-toy v1.1.0 implements contract v1beta1, but the core provider cluster-api v2.0.0 implements v1beta2, and all providers " +
			"must implement the contract of the core provider: install a version for contract v1beta2 with a clusterctl that supports it",
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
