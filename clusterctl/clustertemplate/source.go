package clustertemplate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/repository"
)

const (
	templatePrefix = "cluster-template"
	templateSuffix = ".yaml"
)

// Read returns the contents of a location: "-" for standard input, an https URL, a path.
func Read(ctx context.Context, location string, stdin io.Reader, store *repository.Store) ([]byte, error) {
	raw, err := readLocation(ctx, location, stdin, store)
	if err != nil {
		return nil, fmt.Errorf("cannot read the template from --from: %w", err)
	}
	return raw, nil
}

func readLocation(ctx context.Context, location string, stdin io.Reader, store *repository.Store) ([]byte, error) {
	if location == "-" {
		return io.ReadAll(stdin)
	}
	if u, err := url.Parse(location); err == nil && !filepath.IsAbs(location) {
		switch u.Scheme {
		case "https":
			return store.Content(ctx, location)
		case "file":
			return os.ReadFile(u.Path)
		case "http":
			return nil, fmt.Errorf("%s does not use https: use https, or download the template and pipe it to --from -", location)
		}
	}
	return os.ReadFile(location) // Reading the user's file is the purpose.
}

// fromConfigMap reads a template from the management cluster.
func (g *Generator) fromConfigMap(ctx context.Context, s Source) ([]byte, error) {
	cluster, err := g.Connect(g.Kubeconfig)
	if err != nil {
		return nil, err
	}
	key := cluster.Key(s.ConfigMapNamespace, s.ConfigMap)
	configMap := &corev1.ConfigMap{}
	if err := cluster.Client.Get(ctx, key, configMap); err != nil {
		return nil, fmt.Errorf("cannot read the template from ConfigMap %s: %w", key, err)
	}
	entry := s.ConfigMapKey
	if entry == "" {
		entry = DefaultConfigMapKey
	}
	text, ok := configMap.Data[entry]
	if !ok {
		var keys []string
		for k := range configMap.Data {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		return nil, fmt.Errorf("ConfigMap %s has no key %q, only %q: choose one with --from-config-map-key", key, entry, keys)
	}
	return []byte(text), nil
}

// fromRepository reads a template from an infrastructure provider's repository.
func (g *Generator) fromRepository(ctx context.Context, s Source) ([]byte, *catalog.Release, error) {
	ref, err := g.infrastructure(ctx, s.Infrastructure)
	if err != nil {
		return nil, nil, err
	}
	release, err := g.Catalog.Release(ctx, clusterctlv1.InfrastructureProviderType, ref)
	if err != nil {
		return nil, nil, err
	}
	raw, err := readFlavor(s.Flavor, func(file string) ([]byte, error) { return release.Read(ctx, file) })
	if errors.Is(err, repository.ErrNotFound) {
		return nil, nil, explainFlavors(ctx, release, s.Flavor, err)
	}
	return raw, release, err
}

// renamed returns flavors by the name that they had before classes became the usual case.
func renamed() map[string]string { return map[string]string{"development-topology": "development"} }

// readFlavor reads the template of a flavor, or of its present name.
func readFlavor(flavor string, read func(file string) ([]byte, error)) ([]byte, error) {
	file := templatePrefix + templateSuffix
	if flavor != "" {
		file = templatePrefix + "-" + flavor + templateSuffix
	}
	raw, err := read(file)
	if now, ok := renamed()[flavor]; ok && errors.Is(err, repository.ErrNotFound) {
		return readFlavor(now, read)
	}
	return raw, err
}

// explainFlavors adds the available templates to an error about one that is not found.
func explainFlavors(ctx context.Context, release *catalog.Release, flavor string, err error) error {
	flavors, plain, listErr := flavorsOf(ctx, release)
	if listErr != nil {
		return err
	}
	what := fmt.Sprintf("%s %s has no template of flavor %q", release.Provider.ManifestLabel(), release.Version, flavor)
	if flavor == "" {
		what = fmt.Sprintf("%s %s has no default template", release.Provider.ManifestLabel(), release.Version)
	}
	switch {
	case len(flavors) > 0 && plain:
		return fmt.Errorf("%s: omit --flavor, or choose one of %s", what, strings.Join(flavors, ", "))
	case len(flavors) > 0:
		return fmt.Errorf("%s: choose one with --flavor: %s", what, strings.Join(flavors, ", "))
	case plain:
		return fmt.Errorf("%s: omit --flavor, only the default template exists", what)
	default:
		return fmt.Errorf("%s, and no other templates: use your own template with --from", what)
	}
}

// flavorsOf returns the flavors of a release, and whether it has a default template.
func flavorsOf(ctx context.Context, release *catalog.Release) (flavors []string, plain bool, err error) {
	files, err := release.Files(ctx, release.Version)
	if err != nil {
		return nil, false, err
	}
	for _, file := range files {
		name, ok := strings.CutSuffix(file, templateSuffix)
		if name == templatePrefix && ok {
			plain = true
		}
		if f, isFlavor := strings.CutPrefix(name, templatePrefix+"-"); ok && isFlavor {
			flavors = append(flavors, f)
		}
	}
	return flavors, plain, nil
}

// Flavors returns the flavors of an infrastructure provider, as name or name:version; empty for the one in the management cluster.
func (g *Generator) Flavors(ctx context.Context, infrastructure string) ([]string, error) {
	ref, err := g.infrastructure(ctx, infrastructure)
	if err != nil {
		return nil, err
	}
	release, err := g.Catalog.Release(ctx, clusterctlv1.InfrastructureProviderType, ref)
	if err != nil {
		return nil, err
	}
	flavors, _, err := flavorsOf(ctx, release)
	return flavors, err
}

// infrastructure completes the reference to the infrastructure provider from the management cluster's inventory.
func (g *Generator) infrastructure(ctx context.Context, given string) (packages.Ref, error) {
	var ref packages.Ref
	if given != "" {
		var err error
		if ref, err = packages.ParseRef(given); err != nil {
			return ref, fmt.Errorf("--infrastructure: %w", err)
		}
		if ref.Version != "" {
			return ref, nil
		}
		// Report a misspelled name before connecting to a cluster.
		if _, err := packages.Find(g.Catalog.Config.Providers, clusterctlv1.InfrastructureProviderType, ref.Name); err != nil {
			return ref, fmt.Errorf("--infrastructure: %w", err)
		}
	}
	installed, declared, err := g.installed(ctx)
	if errors.Is(err, management.ErrNoKubeconfig) && given != "" {
		g.IO.Infof("Using the latest version of %s, because there is no management cluster with an installed version", ref.Name)
		return ref, nil
	}
	if apierrors.IsForbidden(err) && given != "" {
		g.IO.Warnf("Using the latest version of %[1]s, because you may not list the installed providers; set the version with "+
			"--infrastructure %[1]s:{version}", ref.Name)
		return ref, nil
	}
	if err != nil {
		return ref, fmt.Errorf(
			"cannot determine the infrastructure provider (--infrastructure {name}:{version} works without a management cluster): %w", err)
	}
	return choose(installed, declared, ref)
}

// choose completes a reference, which may be empty, from the installed providers. declared returns those that the operator
// manages.
func choose(installed inventory.Inventory, declared func() inventory.Declarations, ref packages.Ref) (packages.Ref, error) {
	versions := map[string][]string{}
	var names []string
	for _, p := range installed {
		if !slices.Contains(names, p.ProviderName) {
			names = append(names, p.ProviderName)
		}
		if !slices.Contains(versions[p.ProviderName], p.Version) {
			versions[p.ProviderName] = append(versions[p.ProviderName], p.Version)
		}
	}
	if ref.Name == "" {
		switch len(names) {
		case 0:
			return ref, fmt.Errorf("the management cluster has no infrastructure provider: %s, or specify one with "+
				"--infrastructure {name}:{version}", install("one", "{name}", declared()))
		case 1:
			ref.Name = names[0]
		default:
			return ref, fmt.Errorf("the management cluster has several infrastructure providers (%s): choose one with --infrastructure",
				strings.Join(names, ", "))
		}
	}
	switch found := versions[ref.Name]; len(found) {
	case 1:
		ref.Version = found[0]
		return ref, nil
	case 0:
		return ref, fmt.Errorf("infrastructure provider %s is not installed in the management cluster: %s, or specify a version with "+
			"--infrastructure %s:{version}", ref.Name, install("it", ref.Name, declared()), ref.Name)
	default:
		return ref, fmt.Errorf("infrastructure provider %s is installed in several versions (%s): choose one with --infrastructure %s:{version}",
			ref.Name, strings.Join(found, ", "), ref.Name)
	}
}

// install returns how to install an infrastructure provider: where the operator manages providers, by the object that declares it.
func install(what, name string, declared inventory.Declarations) string {
	if len(declared) == 0 {
		return fmt.Sprintf("install %s with `clusterctl init --infrastructure %s`", what, name)
	}
	if object, ok := declared[clusterctlv1.ManifestLabel(name, clusterctlv1.InfrastructureProviderType)]; ok {
		return fmt.Sprintf("the operator has not installed what %s declares: see `kubectl describe %s %s -n %s`, and correct that object",
			object, strings.ToLower(string(object.Type)), object.GetName(), object.GetNamespace())
	}
	return fmt.Sprintf("the operator manages providers here: declare %s with `clusterctl operator init --infrastructure %s`", what, name)
}

// installed returns the installed infrastructure providers, and a function that reads those that the operator manages, for errors.
func (g *Generator) installed(ctx context.Context) (inventory.Inventory, func() inventory.Declarations, error) {
	cluster, err := g.Connect(g.Kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	if err := cluster.CheckContract(ctx); err != nil {
		return nil, nil, err
	}
	all, err := inventory.Read(ctx, cluster.Client)
	declared := func() inventory.Declarations {
		found, err := inventory.ReadDeclared(ctx, cluster.Client)
		if err != nil {
			g.IO.Logf(1, "What the operator manages is unknown: %v", err)
		}
		return found
	}
	return all.OfType(clusterctlv1.InfrastructureProviderType), declared, err
}

// exists reports whether the object is in the cluster; false if the kind does not exist.
func exists(ctx context.Context, c client.Reader, o client.Object) (bool, error) {
	err := c.Get(ctx, client.ObjectKeyFromObject(o), o)
	if err == nil {
		return true, nil
	}
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	return false, err
}
