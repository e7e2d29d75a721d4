package repository

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"sigs.k8s.io/cluster-api/packages"
)

// Annotations of OCI artifacts.
const (
	titleAnnotation = "org.opencontainers.image.title"
	refAnnotation   = "org.opencontainers.image.ref.name"
)

// Variables with credentials for OCI registries.
const (
	ociUsername     = "OCI_USERNAME"
	ociPassword     = "OCI_PASSWORD"
	ociAccessToken  = "OCI_ACCESS_TOKEN"
	ociRefreshToken = "OCI_REFRESH_TOKEN"
)

// IsOCICredential reports whether a variable has credentials for OCI registries.
func IsOCICredential(name string) bool {
	return slices.Contains([]string{ociUsername, ociPassword, ociAccessToken, ociRefreshToken}, name)
}

// oci is a repository of OCI artifacts, one per version, whose layers are files with titles.
type oci struct {
	provider packages.Provider
	store    artifacts
	// tag is that of all versions; empty: each has its own.
	tag string

	mu     sync.Mutex
	opened map[string]v1.Image
}

// artifacts is where artifacts are: a registry or a layout.
type artifacts interface {
	tags(ctx context.Context) ([]string, error)
	open(ctx context.Context, tag string) (v1.Image, error)
	write(ctx context.Context, tag string, image v1.Image) error
}

// FromOCI returns a Client for releases in OCI artifacts: [http://]registry/repository[:tag], or the absolute path of an OCI layout, also
// with an optional tag. Without a tag, each version is the artifact with its tag. Its layers have the titles metadata.yaml or
// <type>-<name>-<version>-metadata.yaml, and components.yaml, <type>-components.yaml or <type>-<name>-<version>-components.yaml.
//
// variables are OCI_USERNAME and OCI_PASSWORD, OCI_ACCESS_TOKEN, or OCI_REFRESH_TOKEN for a registry that demands credentials. transport
// makes all requests; nil means the default one.
func FromOCI(p packages.Provider, reference string, variables func(name string) string, transport http.RoundTripper) (*Client, error) {
	r := &oci{provider: p, opened: map[string]v1.Image{}}
	folder, err := r.parse(reference, variables, transport)
	if err != nil {
		return nil, fmt.Errorf("%s %q has an invalid artifact %q: %w", p.Type, p.Name, reference, err)
	}
	return &Client{Provider: p, repo: inBounds{r}, loc: location{version: Latest, file: r.names("components")[1], folder: folder}}, nil
}

// parse sets store and tag. It returns the location for messages.
func (r *oci) parse(reference string, variables func(string) string, transport http.RoundTripper) (string, error) {
	if filepath.IsAbs(reference) {
		path, tag, _ := strings.Cut(reference, ":")
		r.store, r.tag = layoutStore{path}, tag
		return path, nil
	}
	plain, insecure := strings.CutPrefix(reference, "http://")
	plain = strings.TrimPrefix(strings.TrimPrefix(plain, "https://"), "oci://")
	var options []name.Option
	if insecure {
		options = append(options, name.Insecure)
	}
	if _, last, _ := strings.Cut(plain, "/"); strings.Contains(last, ":") {
		tagged, err := name.NewTag(plain, append(options, name.StrictValidation)...)
		if err != nil {
			return "", err
		}
		r.store, r.tag = registryStore{tagged.Repository, credentials(variables), transport, registryBounds()}, tagged.TagStr()
		return tagged.Repository.Name(), nil
	}
	repo, err := name.NewRepository(plain, append(options, name.StrictValidation)...)
	if err != nil {
		return "", err
	}
	r.store = registryStore{repo, credentials(variables), transport, registryBounds()}
	return repo.Name(), nil
}

func credentials(variables func(string) string) authn.Authenticator {
	config := authn.AuthConfig{
		Username: variables(ociUsername), Password: variables(ociPassword),
		RegistryToken: variables(ociAccessToken), IdentityToken: variables(ociRefreshToken),
	}
	if config == (authn.AuthConfig{}) {
		return authn.Anonymous
	}
	return authn.FromConfig(config)
}

// names returns the titles that a file may have, for an unknown version without the last one.
func (r *oci) names(kind string) []string {
	return []string{kind + ".yaml", packages.Word(r.provider.Type) + "-" + kind + ".yaml"}
}

// Versions implements Repository.
func (r *oci) Versions(ctx context.Context) ([]string, error) {
	if r.tag != "" {
		return []string{r.tag}, nil
	}
	return r.store.tags(ctx)
}

// File implements Repository.
func (r *oci) File(ctx context.Context, version, file string) ([]byte, error) {
	image, err := r.image(ctx, version)
	if err != nil {
		return nil, err
	}
	found, err := titles(image)
	if err != nil {
		return nil, err
	}
	kind := "components"
	if file == MetadataFile {
		kind = "metadata"
	}
	candidates := append([]string{file}, r.names(kind)...)
	candidates = append(candidates, releaseName(r.provider, version)+"-"+kind+".yaml")
	for _, candidate := range candidates {
		if digest, ok := found[candidate]; ok {
			return read(image, digest, candidate)
		}
	}
	return nil, fmt.Errorf("the artifact has no layer with one of the titles %s: %w",
		strings.Join(slices.Compact(candidates), ", "), ErrNotFound)
}

// Files implements Repository.
func (r *oci) Files(ctx context.Context, version string) ([]string, error) {
	image, err := r.image(ctx, version)
	if err != nil {
		return nil, err
	}
	found, err := titles(image)
	var files []string
	for title := range found {
		files = append(files, title)
	}
	return files, err
}

// image returns the artifact of a version, and reads its manifest once.
func (r *oci) image(ctx context.Context, version string) (v1.Image, error) {
	tag := r.tag
	if tag == "" {
		tag = version
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if image := r.opened[tag]; image != nil {
		return image, nil
	}
	image, err := r.store.open(ctx, tag)
	if err == nil {
		r.opened[tag] = image
	}
	return image, err
}

// titles returns the digests of the layers with titles.
func titles(image v1.Image) (map[string]v1.Hash, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of the artifact: %w", err)
	}
	found := map[string]v1.Hash{}
	for _, layer := range manifest.Layers {
		if title := layer.Annotations[titleAnnotation]; title != "" {
			found[title] = layer.Digest
		}
	}
	return found, nil
}

// read reads a layer, whose digest is verified.
func read(image v1.Image, digest v1.Hash, title string) ([]byte, error) {
	layer, err := image.LayerByDigest(digest)
	if err != nil {
		return nil, fmt.Errorf("reading layer %s of the artifact: %w", title, err)
	}
	content, err := layer.Compressed()
	if err != nil {
		return nil, fmt.Errorf("reading layer %s of the artifact: %w", title, err)
	}
	raw, err := io.ReadAll(io.LimitReader(content, maxDownload+1))
	err = errors.Join(err, content.Close())
	switch {
	case len(raw) > maxDownload:
		return nil, fmt.Errorf("layer %s of the artifact is larger than %d bytes", title, maxDownload)
	case err != nil:
		return nil, fmt.Errorf("reading layer %s of the artifact: %w", title, err)
	}
	return raw, nil
}

// registryStore is a repository of a registry.
type registryStore struct {
	repo        name.Repository
	credentials authn.Authenticator
	transport   http.RoundTripper
	limits      bounds
}

func (r registryStore) options(ctx context.Context) []remote.Option {
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuth(r.credentials)}
	return append(options, remote.WithTransport(boundTransport(r.transport, r.limits, isBlob)))
}

func (r registryStore) tags(ctx context.Context) ([]string, error) {
	tags, err := remote.List(r.repo, r.options(ctx)...)
	return tags, notInRegistry(err)
}

func (r registryStore) open(ctx context.Context, tag string) (v1.Image, error) {
	image, err := remote.Image(r.repo.Tag(tag), r.options(ctx)...)
	return image, notInRegistry(err)
}

// notInRegistry makes the error of a missing repository or tag match ErrNotFound, and adds what to do about missing permissions.
func notInRegistry(err error) error {
	var refused *transport.Error
	if !errors.As(err, &refused) {
		return err
	}
	switch refused.StatusCode {
	case http.StatusNotFound:
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w: set %s and %s, %s, or %s in the provider's Secret", err, ociUsername, ociPassword, ociAccessToken, ociRefreshToken)
	}
	return err
}

// layoutStore is a folder in the OCI image layout.
type layoutStore struct{ path string }

func (s layoutStore) index() (v1.ImageIndex, []v1.Descriptor, error) {
	index, err := layout.ImageIndexFromPath(s.path)
	if err != nil {
		return nil, nil, notFound(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, nil, err
	}
	return index, manifest.Manifests, nil
}

func (s layoutStore) tags(context.Context) ([]string, error) {
	_, list, err := s.index()
	var tags []string
	for _, d := range list {
		if tag := d.Annotations[refAnnotation]; tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags, err
}

func (s layoutStore) open(_ context.Context, tag string) (v1.Image, error) {
	index, list, err := s.index()
	if err != nil {
		return nil, err
	}
	for _, d := range list {
		if d.Annotations[refAnnotation] == tag {
			return index.Image(d.Digest)
		}
	}
	return nil, fmt.Errorf("the layout has no artifact with tag %s: %w", tag, ErrNotFound)
}
