package repository

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages"
)

// configMaps is a repository of ConfigMaps, one per version.
type configMaps struct {
	// found are the ConfigMaps, by version.
	found map[string]*corev1.ConfigMap
	file  string
}

// FromConfigMaps returns a Client for releases in ConfigMaps. Each is the version in its label provider.cluster.x-k8s.io/version, or
// else in its name, and has the keys components and metadata; with the annotation provider.cluster.x-k8s.io/compressed, components
// is compressed with gzip. selected describes which ConfigMaps these are, for messages. ConfigMaps whose version is invalid are
// ignored; two of the same version are an error.
func FromConfigMaps(p packages.Provider, selected string, list []corev1.ConfigMap) (*Client, error) {
	r := configMaps{found: map[string]*corev1.ConfigMap{}, file: packages.Word(p.Type) + "-components.yaml"}
	for i := range list {
		version := cmp.Or(list[i].Labels[operatorv1.VersionLabel], list[i].Name)
		if _, err := packages.ParseVersion(version); err != nil {
			continue
		}
		if other := r.found[version]; other != nil {
			return nil, fmt.Errorf("ConfigMaps %s and %s both have version %s of %s: delete one of them",
				other.Name, list[i].Name, version, p.ManifestLabel())
		}
		r.found[version] = &list[i]
	}
	return &Client{Provider: p, repo: r, loc: location{version: Latest, file: r.file, folder: selected}}, nil
}

// Versions implements Repository.
func (r configMaps) Versions(context.Context) ([]string, error) {
	var versions []string
	for version := range r.found {
		versions = append(versions, version)
	}
	slices.Sort(versions)
	return versions, nil
}

// File implements Repository.
func (r configMaps) File(_ context.Context, version, name string) ([]byte, error) {
	m := r.found[version]
	if m == nil {
		return nil, fmt.Errorf("no ConfigMap has version %s: %w", version, ErrNotFound)
	}
	var key string
	switch name {
	case r.file:
		key = operatorv1.ComponentsKey
	case MetadataFile:
		key = operatorv1.MetadataKey
	default:
		return nil, fmt.Errorf("ConfigMaps have no file %s: %w", name, ErrNotFound)
	}
	raw, ok := m.BinaryData[key]
	if text, plain := m.Data[key]; plain {
		raw, ok = []byte(text), true
	}
	if !ok {
		return nil, fmt.Errorf("ConfigMap %s has no key %s: %w", m.Name, key, ErrNotFound)
	}
	if key != operatorv1.ComponentsKey || m.Annotations[operatorv1.CompressedAnnotation] != "true" {
		return raw, nil
	}
	plain, err := decompress(raw)
	if err != nil {
		return nil, fmt.Errorf("key %s of ConfigMap %s has the annotation %s, but cannot be decompressed: %w",
			key, m.Name, operatorv1.CompressedAnnotation, err)
	}
	return plain, nil
}

// Files implements Repository.
func (r configMaps) Files(context.Context, string) ([]string, error) {
	return []string{r.file, MetadataFile}, nil
}

const (
	// maxPlain is the size in bytes of components that are stored in a ConfigMap without compression: kubectl apply keeps what it has applied
	// in an annotation, and all annotations of an object may have 256 KiB.
	maxPlain = 128 << 10
	// maxConfigMap is the size in bytes of all that a ConfigMap can store.
	maxConfigMap = 1 << 20
)

// releaseName is the name of a release in ConfigMaps and OCI artifacts: <type>-<name>-<version>.
func releaseName(p packages.Provider, version string) string {
	word := strings.ReplaceAll(packages.Word(p.Type), "-extension", "extension")
	return word + "-" + p.Name + "-" + version
}

// ToConfigMap returns a ConfigMap with a release, as FromConfigMaps reads it. Large components are compressed; the error of those that
// are too large even then matches errors.ErrUnsupported.
func ToConfigMap(p packages.Provider, version, namespace string, components, metadata []byte) (*corev1.ConfigMap, error) {
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: releaseName(p, version),
			Labels: map[string]string{
				operatorv1.VersionLabel: version, operatorv1.ProviderNameLabel: p.Name, operatorv1.ProviderTypeLabel: packages.Word(p.Type),
				operatorv1.ManagedByOperatorLabel: "true",
			},
		},
		Data: map[string]string{operatorv1.MetadataKey: string(metadata)},
	}
	if len(components) <= maxPlain {
		m.Data[operatorv1.ComponentsKey] = string(components)
		return m, nil
	}
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	if _, err := w.Write(components); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if small.Len() > maxConfigMap {
		return nil, fmt.Errorf("the components of %s %s are too large for a ConfigMap: %w", p.ManifestLabel(), version, errors.ErrUnsupported)
	}
	m.Annotations = map[string]string{operatorv1.CompressedAnnotation: "true"}
	m.BinaryData = map[string][]byte{operatorv1.ComponentsKey: small.Bytes()}
	return m, nil
}

// decompress decompresses what is not larger than a download may be.
func decompress(raw []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(reader, maxDownload+1))
	if err != nil {
		return nil, err
	}
	if len(plain) > maxDownload {
		return nil, fmt.Errorf("it is larger than %d bytes", maxDownload)
	}
	return plain, nil
}
