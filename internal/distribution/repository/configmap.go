package repository

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/internal/distribution"
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
func FromConfigMaps(p distribution.Provider, selected string, list []corev1.ConfigMap) (*Client, error) {
	r := configMaps{found: map[string]*corev1.ConfigMap{}, file: distribution.Word(p.Type) + "-components.yaml"}
	for i := range list {
		version := cmp.Or(list[i].Labels[operatorv1.VersionLabel], list[i].Name)
		if _, err := distribution.ParseVersion(version); err != nil {
			continue
		}
		if other := r.found[version]; other != nil {
			return nil, fmt.Errorf("ConfigMaps %s and %s both have version %s of %s: delete one of them", other.Name, list[i].Name, version, p.ManifestLabel())
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
		return nil, fmt.Errorf("key %s of ConfigMap %s has the annotation %s, but cannot be decompressed: %w", key, m.Name, operatorv1.CompressedAnnotation, err)
	}
	return plain, nil
}

// Files implements Repository.
func (r configMaps) Files(context.Context, string) ([]string, error) {
	return []string{r.file, MetadataFile}, nil
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
