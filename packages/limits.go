package packages

import (
	"fmt"

	"sigs.k8s.io/cluster-api/sdk/expansion"
)

// Limits of what is read of others: releases, templates, configurations and backups. They are far above what such files have,
// and far below what would exhaust memory or time. The parsers of these files take them from here; the size
// of downloads is in package repository.
const (
	// MaxManifests is the size of a template or of manifests, before and after variables are replaced.
	MaxManifests = 16 << 20
	// MaxDocument is the size of one YAML document, with its aliases expanded.
	MaxDocument = 16 << 20
	// MaxMetadata is the size of a metadata.yaml.
	MaxMetadata = 1 << 20
	// MaxConfiguration is the size of clusterctl's configuration.
	MaxConfiguration = 8 << 20
	// MaxNesting is how deep expressions can be nested in the arguments of others.
	MaxNesting = 20
	// MaxExpressions is how many expressions a line of a template, or an expression of several lines, can have.
	MaxExpressions = 10_000
)

// CheckYAML returns an error if a document, which is called what in it, is larger than limit, also with its aliases expanded. Depth is
// limited by the YAML library.
func CheckYAML(what string, document []byte, limit int) error {
	if len(document) > limit {
		return TooLarge(what, len(document), limit)
	}
	if err := expansion.Check(document, limit); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// TooLarge returns the error for something that is larger than limit, in bytes.
func TooLarge(what string, size, limit int) error {
	return fmt.Errorf("%s is too large: it has %d bytes, and %d MiB are allowed", what, size, limit>>20)
}
