// Package source reads releases of providers from where provider objects say they are.
//
// It keeps what it downloads in ConfigMaps. Repositories are in internal/distribution/repository.
package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/clusterctl/config"
	"sigs.k8s.io/cluster-api/internal/distribution"
	"sigs.k8s.io/cluster-api/internal/distribution/components"
	"sigs.k8s.io/cluster-api/internal/distribution/manifest"
	"sigs.k8s.io/cluster-api/internal/distribution/repository"
	"sigs.k8s.io/cluster-api/internal/distribution/template"
	"sigs.k8s.io/cluster-api/operator/internal/declared"
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
	*repository.Client
	Version string
	// Contract is the contract of Cluster API that it implements.
	Contract string

	variables template.Lookup
	images    components.ImageOverrides
	// isKept is set if the release is in a ConfigMap already.
	isKept bool
}

// Find finds the release that the spec demands, the latest if it has no version.
func (r *Reader) Find(ctx context.Context, p declared.Provider) (*Release, error) {
	cfg, err := r.Config(ctx)
	if err != nil {
		return nil, err
	}
	lookup, err := r.lookup(ctx, p, cfg)
	if err != nil {
		return nil, err
	}
	repo, err := r.kept(ctx, p)
	isKept := repo != nil || isInCluster(p)
	if err == nil && repo == nil {
		repo, err = r.open(ctx, p, cfg, lookup)
	}
	if err != nil {
		return nil, err
	}
	release := &Release{Client: repo, Version: p.GetSpec().Version, variables: lookup, images: cfg.Images, isKept: isKept}
	if release.Version == "" {
		if release.Version, err = repo.DefaultVersion(ctx); err != nil {
			return nil, err
		}
	}
	release.Contract, err = repo.Contract(ctx, release.Version)
	return release, err
}

// isInCluster reports whether the releases of a provider are in ConfigMaps of the user, so that they need not be kept in another one.
func isInCluster(p declared.Provider) bool {
	return p.GetSpec().FetchConfig != nil && p.GetSpec().FetchConfig.Selector != nil
}

// kept returns a repository with the release if it was downloaded before, otherwise nil.
func (r *Reader) kept(ctx context.Context, p declared.Provider) (*repository.Client, error) {
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
func (r *Reader) Keep(ctx context.Context, p declared.Provider, release *Release) error {
	if release.isKept {
		return nil
	}
	files := [2][]byte{}
	for i, name := range []string{release.ComponentsFile(), repository.MetadataFile} {
		var err error
		if files[i], err = release.File(ctx, release.Version, name); err != nil {
			return err
		}
	}
	m, err := repository.ToConfigMap(p.Identity(), release.Version, p.GetNamespace(), files[0], files[1])
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
	return nil
}

// Components returns the objects of the release for a namespace, with the values of variables.
func (r *Release) Components(ctx context.Context, namespace string) (*components.Components, error) {
	raw, err := r.File(ctx, r.Version, r.ComponentsFile())
	if err != nil {
		return nil, err
	}
	return components.New(r.Provider, raw, components.Options{
		Version: r.Version, TargetNamespace: namespace, Variables: r.variables, Images: r.images,
	})
}

func (r *Reader) open(ctx context.Context, p declared.Provider, cfg *config.Config, lookup template.Lookup) (*repository.Client, error) {
	options := r.Options
	for _, name := range []string{config.GitHubTokenVariable, operatorv1.GitHubTokenKey} {
		if token, _ := lookup(name); token != "" {
			options.GitHubToken = token
		}
	}
	fetch, provider := p.GetSpec().FetchConfig, p.Identity()
	switch {
	case fetch == nil:
		known, err := distribution.Find(cfg.Providers, p.Type, p.GetName())
		if err != nil {
			return nil, err // Preflight checks say what to do about it.
		}
		return repository.NewStore(options).Open(known)
	case fetch.URL != "":
		provider.URL = componentsURL(fetch.URL, p)
		return repository.NewStore(options).Open(provider)
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
func componentsURL(url string, p declared.Provider) string {
	page := strings.TrimSuffix(url, "/")
	if !strings.HasSuffix(page, "/releases") {
		return url
	}
	return page + "/" + repository.Latest + "/" + distribution.Word(p.Type) + "-components.yaml"
}

func (r *Reader) configMaps(ctx context.Context, p declared.Provider) (*repository.Client, error) {
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
func (r *Reader) lookup(ctx context.Context, p declared.Provider, cfg *config.Config) (template.Lookup, error) {
	key, ok := secretOf(p)
	if !ok {
		return cfg.Variable, nil
	}
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s with the variables: %w", key, err)
	}
	return func(name string) (string, bool) {
		if value, ok := secret.Data[name]; ok {
			return string(value), true
		}
		return cfg.Variable(name)
	}, nil
}

func secretOf(p declared.Provider) (client.ObjectKey, bool) {
	spec := p.GetSpec()
	switch {
	case spec.SecretName != nil && *spec.SecretName != "":
		return client.ObjectKey{Namespace: p.GetNamespace(), Name: *spec.SecretName}, true
	case spec.ConfigSecret != nil:
		key := client.ObjectKey{Namespace: spec.ConfigSecret.Namespace, Name: spec.ConfigSecret.Name}
		if key.Namespace == "" {
			key.Namespace = p.GetNamespace()
		}
		return key, true
	}
	return client.ObjectKey{}, false
}

// Additional returns the objects of spec.additionalManifests, none without it.
func (r *Reader) Additional(ctx context.Context, p declared.Provider) ([]unstructured.Unstructured, error) {
	ref := p.GetSpec().AdditionalManifests
	if ref == nil {
		return nil, nil
	}
	key := client.ObjectKey{Namespace: cmp.Or(ref.Namespace, p.GetNamespace()), Name: ref.Name}
	m := &corev1.ConfigMap{}
	if err := r.Live.Get(ctx, key, m); err != nil {
		return nil, fmt.Errorf("spec.additionalManifests: reading ConfigMap %s: %w", key, err)
	}
	text, ok := m.Data[operatorv1.ManifestsKey]
	if !ok {
		return nil, fmt.Errorf("spec.additionalManifests: ConfigMap %s has no key %s", key, operatorv1.ManifestsKey)
	}
	objects, err := manifest.Parse([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("spec.additionalManifests: key %s of ConfigMap %s: %w", operatorv1.ManifestsKey, key, err)
	}
	components.AddLabels(objects, components.Labels(p.Identity()))
	return objects, nil
}
