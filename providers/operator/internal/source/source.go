// Package source reads releases of providers from the sources that provider objects specify.
//
// It keeps what it downloads in ConfigMaps. Repositories are in packages/repository.
package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/packages/template"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
)

// Reader reads releases.
type Reader struct {
	// Live reads Secrets and ConfigMaps, and writes ConfigMaps, without a cache.
	Live client.Client
	// Config returns the configuration of clusterctl: locations of providers, overrides of images, and values of variables that the
	// Secret of a provider does not have.
	Config func(ctx context.Context) (*config.Config, error)
	// Options configure repositories. A token in the Secret of a provider takes precedence over the one in the configuration.
	Options repository.Options
	// Clock measures the pauses between attempts of downloads.
	Clock clock.PassiveClock

	downloads downloads
}

// ConfigFile returns a function that reads the configuration of clusterctl from a file, each time, because it may be replaced. Without the
// file, it is the default configuration. env looks up the environment, which takes precedence over values in the file.
func ConfigFile(path string, env template.Lookup) func(context.Context) (*config.Config, error) {
	return func(ctx context.Context) (*config.Config, error) {
		if _, err := os.Stat(path); path == "" || errors.Is(err, fs.ErrNotExist) {
			return config.Default(env), nil
		}
		return config.Load(ctx, config.Options{Path: path, Env: env})
	}
}

// Release is a version of a provider.
type Release struct {
	Version string
	// Contract is the contract of Cluster API that it implements.
	Contract string

	provider             packages.Provider
	components, metadata []byte
	lookup               template.Lookup
	images               components.ImageOverrides
	// isKept is set if the release is in a ConfigMap already.
	isKept bool
}

// Find finds the release that the spec demands; if it has no version the latest, which implements one of the contracts unless there are
// none or it is a core provider. What was downloaded for this generation of the object is
// not downloaded again. The error of a download that failed is a DownloadError.
func (r *Reader) Find(ctx context.Context, p providerobject.Provider, contracts []string) (*Release, error) {
	cfg, err := r.Config(ctx)
	if err != nil {
		return nil, err
	}
	lookup, err := r.lookup(ctx, p, cfg)
	if err != nil {
		return nil, err
	}
	release := r.downloads.of(p)
	if release == nil {
		if release, err = r.read(ctx, p, cfg, lookup, contracts); err != nil {
			return nil, err
		}
	}
	out := *release
	out.lookup, out.images = withoutCredentials(lookup), cfg.Images
	return &out, nil
}

// withoutCredentials does not find the credentials for downloads: a release could write them anywhere.
func withoutCredentials(lookup template.Lookup) template.Lookup {
	return func(name string) (string, bool) {
		if isCredential(name) {
			return "", false
		}
		return lookup(name)
	}
}

func isCredential(name string) bool {
	return name == config.GitHubTokenVariable || name == operatorv1.GitHubTokenKey || repository.IsOCICredential(name)
}

// read reads a release from where it was kept, or else from its source.
func (r *Reader) read(
	ctx context.Context, p providerobject.Provider, cfg *config.Config, lookup template.Lookup, contracts []string,
) (*Release, error) {
	repo, err := r.kept(ctx, p)
	isKept := repo != nil || isInCluster(p)
	isRemote := repo == nil && !isLocal(p)
	if err == nil && repo == nil {
		repo, err = r.open(ctx, p, cfg, lookup)
	}
	if err != nil {
		return nil, err
	}
	repo.Advice = r.Options.Advice
	if p.Type != clusterctlv1.CoreProviderType {
		repo.Contracts = contracts
	}
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	release, err := readRelease(ctx, repo, p.GetSpec().Version)
	if errors.Is(err, repository.ErrNotFound) {
		err = fmt.Errorf("%w: add it, or correct spec.version or spec.fetchConfig", err)
	}
	switch {
	case err != nil && isRemote:
		return nil, &DownloadError{Err: err, Pause: r.downloads.failed(p, r.Clock.Now())}
	case err != nil:
		return nil, err
	case isRemote:
		r.downloads.succeeded(p, release)
	default:
		r.downloads.forget(p)
	}
	release.isKept = isKept
	return release, nil
}

func readRelease(ctx context.Context, repo *repository.Client, version string) (*Release, error) {
	release := &Release{Version: version, provider: repo.Provider}
	var err error
	if version == "" {
		if release.Version, err = repo.DefaultVersion(ctx); err != nil {
			return nil, err
		}
	}
	if release.Contract, err = repo.Contract(ctx, release.Version); err != nil {
		return nil, err
	}
	if release.metadata, err = repo.File(ctx, release.Version, repository.MetadataFile); err != nil {
		return nil, err
	}
	release.components, err = repo.File(ctx, release.Version, repo.ComponentsFile())
	return release, err
}

// isInCluster reports whether the releases of a provider are in ConfigMaps of the user, so that they need not be kept in another one.
func isInCluster(p providerobject.Provider) bool {
	return p.GetSpec().FetchConfig != nil && p.GetSpec().FetchConfig.Selector != nil
}

// kept returns a repository with the release if it was downloaded before, otherwise nil.
func (r *Reader) kept(ctx context.Context, p providerobject.Provider) (*repository.Client, error) {
	version := p.GetSpec().Version
	if version == "" || isInCluster(p) {
		return nil, nil
	}
	m, err := repository.ToConfigMap(p.Identity(), version, p.GetNamespace(), nil, nil)
	if err != nil {
		return nil, err
	}
	key := client.ObjectKeyFromObject(m)
	if err := r.Live.Get(ctx, key, m); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s with the release: %w", key, err)
	}
	return repository.FromConfigMaps(p.Identity(), "ConfigMap "+key.String(), []corev1.ConfigMap{*m})
}

// Keep stores the release in a ConfigMap of the provider, so that the next reconcile needs no download. Releases that are too large are
// not stored.
func (r *Reader) Keep(ctx context.Context, p providerobject.Provider, release *Release) error {
	if release.isKept {
		return nil
	}
	m, err := repository.ToConfigMap(p.Identity(), release.Version, p.GetNamespace(), release.components, release.metadata)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	m.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: operatorv1.GroupVersion.String(), Kind: string(p.Type), Name: p.GetName(), UID: p.GetUID(),
	}}
	if err := r.Live.Create(ctx, m); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("storing the release in ConfigMap %s: %w", client.ObjectKeyFromObject(m), err)
	}
	r.Forget(p)
	return nil
}

// Paused returns how long the pause after a failed download of an object still lasts; zero or less if Find may be called.
func (r *Reader) Paused(p providerobject.Provider) time.Duration {
	return r.downloads.left(p, r.Clock.Now())
}

// Forget forgets what was downloaded for an object, and what could not be.
func (r *Reader) Forget(p providerobject.Provider) { r.downloads.forget(p) }

// Components returns the objects of the release for the namespace of its object, with the values of variables.
func (r *Release) Components(p providerobject.Provider) (*components.Components, error) {
	out, err := components.New(r.provider, r.components, components.Options{
		Version: r.Version, TargetNamespace: p.GetNamespace(), Variables: r.lookup, Images: r.images,
	})
	var missing *template.MissingError
	switch {
	case errors.As(err, &missing):
		return nil, r.missing(p, missing.Names)
	case err == nil && !slices.ContainsFunc(out.Objects, func(o unstructured.Unstructured) bool { return o.GetKind() != "Namespace" }):
		return nil, fmt.Errorf("the components of %s %s have no objects", r.provider.ManifestLabel(), r.Version)
	}
	return out, err
}

// missing returns the error of variables without a value.
func (r *Release) missing(p providerobject.Provider, names []string) error {
	needs := fmt.Sprintf("the components of %s %s need values of the variables %s",
		r.provider.ManifestLabel(), r.Version, strings.Join(names, ", "))
	if i := slices.IndexFunc(names, isCredential); i >= 0 {
		return fmt.Errorf("%s: credentials for downloads are not passed on to components: use a release without %s", needs, names[i])
	}
	key, field, ok := secretOf(p)
	if !ok {
		return fmt.Errorf("%s: create a Secret with them in namespace %s, and set spec.secretName to its name", needs, p.GetNamespace())
	}
	return fmt.Errorf("%s: %s: Secret %s does not have them: add them, or create another one with all variables, and change the name",
		field, needs, key)
}

func (r *Reader) open(
	ctx context.Context, p providerobject.Provider, cfg *config.Config, lookup template.Lookup,
) (*repository.Client, error) {
	options := r.Options
	for _, name := range []string{config.GitHubTokenVariable, operatorv1.GitHubTokenKey} {
		if token, _ := lookup(name); token != "" {
			options.GitHubToken = token
		}
	}
	fetch, provider := p.GetSpec().FetchConfig, p.Identity()
	switch {
	case fetch == nil:
		known, err := packages.Find(cfg.Providers, p.Type, p.GetName())
		if err != nil {
			return nil, err // Preflight checks say what to do about it.
		}
		return repository.NewStore(options).Open(known)
	case fetch.URL != "":
		provider.URL = componentsURL(fetch.URL, p)
		repo, err := repository.NewStore(options).Open(provider)
		if err != nil {
			return nil, fmt.Errorf("spec.fetchConfig.url: %w", err)
		}
		return repo, nil
	case fetch.Selector != nil:
		return r.configMaps(ctx, p)
	default:
		return repository.FromOCI(p.Identity(), fetch.OCI, func(name string) string {
			value, _ := lookup(name)
			return value
		}, nil)
	}
}

// componentsURL returns the URL of the components file for that of a releases page, and other URLs as they are.
func componentsURL(url string, p providerobject.Provider) string {
	page := strings.TrimSuffix(url, "/")
	if !strings.HasSuffix(page, "/releases") {
		return url
	}
	return page + "/" + repository.Latest + "/" + packages.Word(p.Type) + "-components.yaml"
}

func (r *Reader) configMaps(ctx context.Context, p providerobject.Provider) (*repository.Client, error) {
	selector, err := metav1.LabelSelectorAsSelector(p.GetSpec().FetchConfig.Selector)
	if err != nil {
		return nil, fmt.Errorf("spec.fetchConfig.selector: %w", err)
	}
	list := &corev1.ConfigMapList{}
	if err := r.Live.List(ctx, list, client.InNamespace(p.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing ConfigMaps of namespace %s with labels %s: %w", p.GetNamespace(), selector, err)
	}
	selected := fmt.Sprintf("ConfigMaps of namespace %s with labels %s", p.GetNamespace(), selector)
	return repository.FromConfigMaps(p.Identity(), selected, list.Items)
}

// lookup returns a function that looks up variables in the provider's Secret, and then in the configuration.
func (r *Reader) lookup(ctx context.Context, p providerobject.Provider, cfg *config.Config) (template.Lookup, error) {
	key, field, ok := secretOf(p)
	if !ok {
		return cfg.Variable, nil
	}
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s: Secret %s does not exist: create it with the values of the provider's variables, or correct the name",
			field, key)
	} else if err != nil {
		return nil, fmt.Errorf("%s: reading Secret %s with the variables: %w", field, key, err)
	}
	return func(name string) (string, bool) {
		if value, ok := secret.Data[name]; ok {
			return string(value), true
		}
		return cfg.Variable(name)
	}, nil
}

// secretOf returns the Secret with the variables, and the field that refers to it.
func secretOf(p providerobject.Provider) (key client.ObjectKey, field string, ok bool) {
	spec := p.GetSpec()
	switch {
	case spec.SecretName != nil && *spec.SecretName != "":
		return client.ObjectKey{Namespace: p.GetNamespace(), Name: *spec.SecretName}, "spec.secretName", true
	case spec.ConfigSecret != nil:
		key := client.ObjectKey{Namespace: spec.ConfigSecret.Namespace, Name: spec.ConfigSecret.Name}
		if key.Namespace == "" {
			key.Namespace = p.GetNamespace()
		}
		return key, "spec.configSecret", true
	}
	return client.ObjectKey{}, "", false
}

// Additional returns the objects of spec.additionalManifests, none without it.
func (r *Reader) Additional(ctx context.Context, p providerobject.Provider) ([]unstructured.Unstructured, error) {
	ref := p.GetSpec().AdditionalManifests
	if ref == nil {
		return nil, nil
	}
	key := client.ObjectKey{Namespace: cmp.Or(ref.Namespace, p.GetNamespace()), Name: ref.Name}
	m := &corev1.ConfigMap{}
	if err := r.Live.Get(ctx, key, m); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("spec.additionalManifests: ConfigMap %s does not exist: create it with objects in its key %s, or correct the name",
			key, operatorv1.ManifestsKey)
	} else if err != nil {
		return nil, fmt.Errorf("spec.additionalManifests: reading ConfigMap %s: %w", key, err)
	}
	text, ok := m.Data[operatorv1.ManifestsKey]
	if !ok {
		return nil, fmt.Errorf("spec.additionalManifests: ConfigMap %s has no key %s: add it, with the objects as YAML",
			key, operatorv1.ManifestsKey)
	}
	objects, err := manifest.Parse([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("spec.additionalManifests: key %s of ConfigMap %s: %w", operatorv1.ManifestsKey, key, err)
	}
	components.AddLabels(objects, components.Labels(p.Identity()))
	return objects, nil
}
