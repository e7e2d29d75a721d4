// Package source reads releases of providers from where provider objects say they are.
//
// It reads. Repositories are in internal/distribution/repository.
package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/internal/distribution"
	"sigs.k8s.io/cluster-api/internal/distribution/components"
	"sigs.k8s.io/cluster-api/internal/distribution/manifest"
	"sigs.k8s.io/cluster-api/internal/distribution/repository"
	"sigs.k8s.io/cluster-api/internal/distribution/template"
	"sigs.k8s.io/cluster-api/operator/internal/declared"
)

// Reader reads releases.
type Reader struct {
	// Live reads Secrets and ConfigMaps.
	Live client.Reader
	// Known are the providers with built-in locations.
	Known []distribution.Provider
	// Options configure repositories. A token in the Secret of a provider takes precedence.
	Options repository.Options
	// Getenv reads variables that the Secret of a provider does not have.
	Getenv func(name string) string
}

// Release is a version of a provider.
type Release struct {
	*repository.Client
	Version string
	// Contract is the contract of Cluster API that it implements.
	Contract string

	variables template.Lookup
}

// Find finds the release that the spec demands, the latest if it has no version.
func (r *Reader) Find(ctx context.Context, p declared.Provider) (*Release, error) {
	variables, err := r.variables(ctx, p)
	if err != nil {
		return nil, err
	}
	repo, err := r.open(ctx, p, variables)
	if err != nil {
		return nil, err
	}
	release := &Release{Client: repo, Version: p.GetSpec().Version, variables: r.lookup(variables)}
	if release.Version == "" {
		if release.Version, err = repo.DefaultVersion(ctx); err != nil {
			return nil, err
		}
	}
	release.Contract, err = repo.Contract(ctx, release.Version)
	return release, err
}

// Components returns the objects of the release for a namespace, with the values of variables.
func (r *Release) Components(ctx context.Context, namespace string) (*components.Components, error) {
	raw, err := r.File(ctx, r.Version, r.ComponentsFile())
	if err != nil {
		return nil, err
	}
	return components.New(r.Provider, raw, components.Options{Version: r.Version, TargetNamespace: namespace, Variables: r.variables})
}

func (r *Reader) open(ctx context.Context, p declared.Provider, variables map[string][]byte) (*repository.Client, error) {
	options := r.Options
	if token := string(variables[operatorv1.GitHubTokenKey]); token != "" {
		options.GitHubToken = token
	}
	config, provider := p.GetSpec().FetchConfig, p.Identity()
	switch {
	case config == nil:
		i := slices.IndexFunc(r.Known, func(k distribution.Provider) bool { return k.Type == p.Type && k.Name == p.GetName() })
		if i < 0 {
			return nil, fmt.Errorf("the location of %s is not built in: set spec.fetchConfig", provider.ManifestLabel())
		}
		return repository.NewStore(options).Open(r.Known[i])
	case config.URL != "":
		provider.URL = componentsURL(config.URL, p)
		return repository.NewStore(options).Open(provider)
	case config.Selector != nil:
		return r.configMaps(ctx, p)
	default:
		return nil, errors.New("spec.fetchConfig.oci is not supported by this version: use url or selector")
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

// variables returns the data of the provider's Secret, nil if it has none.
func (r *Reader) variables(ctx context.Context, p declared.Provider) (map[string][]byte, error) {
	key, ok := secretOf(p)
	if !ok {
		return nil, nil
	}
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s with the variables: %w", key, err)
	}
	return secret.Data, nil
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

func (r *Reader) lookup(variables map[string][]byte) template.Lookup {
	return func(name string) (string, bool) {
		if value, ok := variables[name]; ok {
			return string(value), true
		}
		value := r.Getenv(name)
		return value, value != ""
	}
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
