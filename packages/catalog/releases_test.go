package catalog

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/packages/template"
)

// TestPublishedReleases reads releases of other projects, in place: everything that clusterctl does with them before it writes.
func TestPublishedReleases(t *testing.T) {
	root := filepath.Join(cmp.Or(os.Getenv("CAPI_FACTS_DIR"), filepath.Join("..", "..", "..", "shared", "facts")), "data", "providers")
	folders, err := filepath.Glob(filepath.Join(root, "*-v*"))
	if err != nil || len(folders) == 0 {
		t.Skipf("there are no published releases: set CAPI_FACTS_DIR to the directory with data/providers (%v)", err)
	}
	// missing are the variables that the components require, contract what their metadata says.
	want := map[string]struct {
		missing  []string
		contract string
	}{
		"aws":       {[]string{"AWS_B64ENCODED_CREDENTIALS"}, "v1beta1"},
		"azure":     {nil, "v1beta1"},
		"hetzner":   {nil, "v1beta1"},
		"metal3":    {nil, "v1beta2"},
		"openstack": {nil, "v1beta1"},
		"vsphere":   {[]string{"VSPHERE_PASSWORD", "VSPHERE_USERNAME"}, "v1beta2"},
	}
	for _, folder := range folders {
		name, version, _ := strings.Cut(filepath.Base(folder), "-")
		t.Run(name, func(t *testing.T) {
			expected, known := want[name]
			if !known {
				t.Fatalf("nothing is known of %s", name)
			}
			c := published(t, folder, name, version)
			release, err := c.Release(t.Context(), clusterctlv1.InfrastructureProviderType, packages.Ref{Name: name, Version: version})
			if err != nil {
				t.Fatal(err)
			}
			if contract, err := release.Contract(t.Context(), version); err != nil || contract != expected.contract {
				t.Errorf("the contract is %q, %v", contract, err)
			}
			_, err = c.Components(t.Context(), release, Options{})
			var missing *template.MissingError
			if errors.As(err, &missing); err != nil && missing == nil || missing == nil && expected.missing != nil ||
				missing != nil && !slices.Equal(missing.Names, expected.missing) {
				t.Errorf("without variables: %v", err)
			}
			values := map[string]string{}
			for _, v := range expected.missing {
				values[v] = "eA=="
			}
			checkComponents(t, &Catalog{Config: c.Config.With(values), Store: c.Store}, release)
			checkTemplates(t, filepath.Join(folder, "templates"))
		})
	}
}

// published returns a Catalog of a local repository with links to the files of a release.
func published(t *testing.T, folder, name, version string) *Catalog {
	t.Helper()
	p := packages.Provider{Name: name, Type: clusterctlv1.InfrastructureProviderType}
	local := filepath.Join(t.TempDir(), p.ManifestLabel(), version)
	if err := os.MkdirAll(local, 0o750); err != nil {
		t.Fatal(err)
	}
	absolute, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	for link, file := range map[string]string{"infrastructure-components.yaml": "components.yaml", "metadata.yaml": "metadata.yaml"} {
		if err := os.Symlink(filepath.Join(absolute, file), filepath.Join(local, link)); err != nil {
			t.Fatal(err)
		}
	}
	conf := config.Default(func(string) (string, bool) { return "", false })
	p.URL = filepath.Join(local, "infrastructure-components.yaml")
	conf.Providers = []packages.Provider{p}
	return &Catalog{Config: conf, Store: repository.NewStore(repository.Options{})}
}

func checkComponents(t *testing.T, c *Catalog, release *Release) {
	t.Helper()
	for _, raw := range []bool{false, true} {
		all, err := c.Components(t.Context(), release, Options{Raw: raw})
		if err != nil {
			t.Errorf("raw %t: %v", raw, err)
			continue
		}
		if err := all.ValidateCRDNames(); err != nil {
			t.Error(err)
		}
		if len(all.ManagerDeployments()) == 0 || len(all.Images) == 0 || !all.NeedsCertManager() {
			t.Errorf("managers %v, images %v, cert-manager %t", all.ManagerDeployments(), all.Images, all.NeedsCertManager())
		}
		if ordered := components.InstallOrder(all.Objects); len(ordered) != len(all.Objects) {
			t.Errorf("%d objects in order of %d", len(ordered), len(all.Objects))
		}
		written, err := manifest.Format(all.Objects)
		if err != nil || !raw && strings.Contains(string(written), "${") {
			t.Errorf("the objects cannot be written, or have expressions left: %v", err)
		}
	}
}

// checkTemplates generates each template without values, where that is possible, and with all.
func checkTemplates(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no templates in %s: %v", folder, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := template.Parse(raw)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		required := map[string]bool{}
		for _, v := range parsed.Variables() {
			required[v.Name] = v.Default == nil
		}
		text, err := parsed.Execute(func(name string) (string, bool) {
			if strings.HasSuffix(name, "_EXTRA_CONFIG") {
				return "", true // Lines of YAML.
			}
			return map[bool]string{true: "1"}[required[name]], required[name]
		})
		if err != nil {
			t.Errorf("%s with the required variables: %v", file, err)
			continue
		}
		objects, err := manifest.ParseTemplate(text)
		if err != nil || len(objects) == 0 {
			t.Errorf("%s: %d objects, %v", file, len(objects), err)
		}
		if _, err := manifest.Normalize(text); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
